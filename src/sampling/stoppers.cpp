#include "sampling/stoppers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "attach/own_cpu.h"
#include "sampling/stopper.h"
#include "system/calls.h"

namespace luaspy {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

Stoppers::Stoppers(const TickGrid& grid, double max_stopped, bool idle, bool always_stop, bool kernel)
    : grid_(grid),
      idle_(idle),
      kernel_(kernel),
      takes_logs_(!always_stop),
      usable_(usable_cpus()),
      stoppers_(usable_.size()),
      budget_(max_stopped / 100),
      start_(grid.time_of(0)) {}

Stoppers::~Stoppers() { stop(); }

void Stoppers::stop() {
  {
    const std::lock_guard lock(stoppers_lock_);
    if (std::exchange(stopped_, true)) return;
  }
  if (!kept_off_.empty()) (void)stay_on(usable_);
  const std::vector<Stopper*> stoppers = all();
  for (Stopper* const stopper : stoppers) stopper->end();
  for (Stopper* const stopper : stoppers) {
    while (!stopper->has_ended()) {
      stopper->interrupt();
      (void)system::sleep_until(Clock::now() + 1ms);
    }
  }
}

bool Stoppers::is_usable(int cpu) const { return std::ranges::binary_search(usable_, cpu); }

bool Stoppers::need(int cpu) {
  const auto place = std::ranges::lower_bound(usable_, cpu);
  if (place == usable_.end() || *place != cpu) return false;
  const auto index = static_cast<std::size_t>(place - usable_.begin());
  const std::lock_guard lock(stoppers_lock_);
  if (stopped_) return false;
  std::unique_ptr<Stopper>& stopper = stoppers_[index];
  if (stopper == nullptr) stopper = std::make_unique<Stopper>(*this, cpu, static_cast<int>(index));
  stopper->activate();
  return stopper->active();
}

bool Stoppers::retire(Stopper& stopper) {
  const std::lock_guard lock(stoppers_lock_);
  const auto other = std::ranges::find_if(
      stoppers_, [&](const auto& each) { return each != nullptr && each->active() && each.get() != &stopper; });
  if (other == stoppers_.end()) return false;
  stopper.deactivate();
  for (const auto& watch : *roster()) {
    if (watch->cpu == stopper.cpu()) watch->cpu = (*other)->cpu();
  }
  return true;
}

bool Stoppers::on_time() const {
  return std::ranges::all_of(all(), [](const Stopper* stopper) { return stopper->real_time(); });
}

bool Stoppers::begin_tick(std::int64_t number, Clock::time_point now) {
  const std::lock_guard lock(budget_lock_);
  if (number <= last_tick_) return !skips_;  // another stopper has begun it
  if (!skips_) budget_.end_tick(last_tick_at_);
  last_tick_ = number;
  const std::int64_t at = to_ns(now - start_);
  skips_ = at < budget_.paid_at();
  if (!skips_) last_tick_at_ = at;
  ++(skips_ ? skipped_ : ticks_);
  return !skips_;
}

void Stoppers::add_stop(int tid, std::int64_t ns) {
  const std::lock_guard lock(budget_lock_);
  budget_.add(tid, ns);
}

// Each log costs a file and two pages of locked memory. If it is not allowed for one thread, it is
// not tried for others.
void Stoppers::open_log(Watch& watch) {
  constexpr int most = 256;
  if (!takes_logs_ || logs_ == most) return;
  watch.switches = SwitchLog::open(watch.thread->tid());
  if (watch.switches != nullptr) ++logs_;
  else if (watch.thread->cpu() != -1) takes_logs_ = false;
}

// A log costs some µs per switch. It is closed for a thread that sleeps and wakes thousands of
// times a second: stops cost that thread less.
void Stoppers::close_costly_logs() {
  constexpr Clock::duration ask_again = 500ms;
  constexpr double most = 2000;  // switches per second that luaspy has not caused
  const Clock::time_point now = Clock::now();
  if (now - logs_asked_ < ask_again) return;
  const double seconds = static_cast<double>(to_ns(now - logs_asked_)) / 1e9;
  logs_asked_ = now;
  const double bytes = (most + 1e9 / static_cast<double>(grid_.interval().count())) *
                       static_cast<double>(SwitchLog::bytes_per_switch) * seconds;
  for (const std::shared_ptr<Watch>& watch : *main_roster_) {
    if (watch->switches == nullptr) continue;
    const std::uint64_t noted = watch->switches->noted(), before = std::exchange(watch->noted, noted);
    if (static_cast<double>(noted - before) <= bytes || !watch->claim.try_take()) continue;
    watch->switches = nullptr;
    --logs_;
    watch->claim.give_back();
  }
}

std::vector<std::shared_ptr<Watch>> Stoppers::watch(const std::vector<std::unique_ptr<Session>>& sessions,
                                                    const Session* but) {
  close_costly_logs();
  auto next = std::make_shared<Roster>();
  const Clock::time_point now = Clock::now();
  bool same = true;
  std::size_t kept = 0;
  for (const auto& session : sessions) {
    if (session == nullptr || session.get() == but) continue;  // some are just being dropped
    for (const std::shared_ptr<Thread>& thread : session->target().process().threads()) {
      const auto known = watches_.find(thread.get());
      if (known != watches_.end()) {
        next->push_back(known->second);
        ++kept;
        continue;
      }
      same = false;
      auto watch = std::make_shared<Watch>(*session, thread, now);
      open_log(*watch);
      // A thread on a CPU that luaspy may not use is handled from another CPU.
      if (!need(watch->cpu) && !usable_.empty()) watch->cpu = usable_.front(), (void)need(usable_.front());
      next->push_back(std::move(watch));
    }
  }
  if (same && kept == main_roster_->size()) return {};
  const std::shared_ptr<const Roster> old = std::exchange(main_roster_, next);
  watches_.clear();
  for (const auto& watch : *next) watches_[watch->thread.get()] = watch;
  std::atomic_store(&roster_, main_roster_);
  // Wait for threads that are being looked at: their session may be gone after this returns.
  std::vector<std::shared_ptr<Watch>> left;
  for (const auto& watch : *old) {
    if (watches_.contains(watch->thread.get())) continue;
    left.push_back(watch);
    while (!watch->claim.try_take()) {
      watch_over();
      (void)system::sleep_until(Clock::now() + 100us);
    }
    watch->gone = true;
    if (watch->switches != nullptr) watch->switches = nullptr, --logs_;
    constexpr Clock::duration stops_within = 2s;  // a thread that stops later is released without access to its session
    for (const Clock::time_point end = Clock::now() + stops_within; watch->asked_by != -1 && Clock::now() < end;)
      (void)system::sleep_until(Clock::now() + 100us);
  }
  return left;
}

std::vector<Stopper*> Stoppers::all() const {
  const std::lock_guard lock(stoppers_lock_);
  std::vector<Stopper*> all;
  for (const auto& stopper : stoppers_) {
    if (stopper != nullptr) all.push_back(stopper.get());
  }
  return all;
}

void Stoppers::drain(Clock::time_point until, const std::function<void(Found&)>& take) {
  const std::vector<Stopper*> stoppers = all();
  for (;;) {
    Stopper* first = nullptr;
    for (Stopper* const stopper : stoppers) {
      if (stopper->front() == nullptr || stopper->front()->at > until) continue;
      if (first == nullptr || stopper->front()->number < first->front()->number) first = stopper;
    }
    if (first == nullptr) return;
    take(*first->front());
    first->pop();
  }
}

void Stoppers::watch_over() {
  constexpr std::int64_t wait_at_most = 50'000'000;  // ns
  const std::int64_t now = to_ns(Clock::now().time_since_epoch());
  for (Stopper* const stopper : all()) {
    const std::int64_t since = stopper->waits_since();
    if (since != 0 && now - since > wait_at_most) stopper->interrupt();
  }
}

void Stoppers::keep_off() {
  std::vector<int> busy;
  for (const auto& watch : *main_roster_) {
    if (!watch->slept && is_usable(watch->cpu)) busy.push_back(watch->cpu);
  }
  std::ranges::sort(busy);
  busy.erase(std::unique(busy.begin(), busy.end()), busy.end());
  if (busy == kept_off_) return;
  std::vector<int> others;
  std::ranges::set_difference(usable_, busy, std::back_inserter(others));
  (void)stay_on(others.empty() ? usable_ : others);
  kept_off_ = std::move(busy);
}

}  // namespace luaspy
