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

namespace {

// How often the thread was given a CPU; 0: the kernel does not report it.
std::uint64_t runs_of(const Watch& watch) {
  return watch.switches != nullptr ? watch.switches->runs() : watch.thread->schedule().runs;
}

}  // namespace

Stoppers::Stoppers(const TickGrid& grid, double max_stopped, bool idle, bool always_stop,
                   std::shared_ptr<const KernelLogs> kernel, Watchdog& watchdog)
    : grid_(grid),
      idle_(idle),
      kernel_(std::move(kernel)),
      takes_logs_(!always_stop),
      usable_(usable_cpus()),
      stoppers_(usable_.size()),
      watchdog_(watchdog),
      left_alone_(usable_.size()),
      budget_(max_stopped / 100),
      start_(grid.time_of(0)) {
  const Urgency chosen = urgency_of(0);  // by the user, for all of luaspy
  own_priority_ = chosen.is_ordinary() ? std::min(watchdog.highest_priority(), 1) : chosen.priority();
  priority_ = own_priority_;
}

Stoppers::~Stoppers() { stop(); }

void Stoppers::stop() {
  {
    const std::lock_guard lock(stoppers_lock_);
    if (std::exchange(stopped_, true)) return;
  }
  if (!kept_off_.empty()) (void)stay_on(usable_);
  const std::vector<Stopper*> stoppers = all();
  for (Stopper* const stopper : stoppers) stopper->end();
  // They may starve. The watchdog lets them end within 100 ms, unless it starves, too.
  constexpr Clock::duration patience = 30ms, long_patience = 150ms;
  const Clock::time_point asked = Clock::now();
  bool moved = false, lowered = false;
  for (Stopper* const stopper : stoppers) {
    while (!stopper->has_ended()) {
      stopper->interrupt();
      (void)system::sleep_until(Clock::now() + 1ms);
      if (!moved && Clock::now() - asked >= patience) {
        moved = true;
        for (Stopper* const each : stoppers) each->free_from_cpu(usable_);
      }
      if (!lowered && Clock::now() - asked >= long_patience) {
        lowered = true;
        for (Stopper* const each : stoppers) each->lower();
      }
    }
  }
}

bool Stoppers::is_usable(int cpu) const { return std::ranges::binary_search(usable_, cpu); }

bool Stoppers::need(int cpu) {
  const auto place = std::ranges::lower_bound(usable_, cpu);
  if (place == usable_.end() || *place != cpu) return false;
  const auto index = static_cast<std::size_t>(place - usable_.begin());
  if (is_left_alone(index)) return false;
  const std::lock_guard lock(stoppers_lock_);
  if (stopped_) return false;
  std::unique_ptr<Stopper>& stopper = stoppers_[index];
  if (stopper == nullptr)
    stopper = std::make_unique<Stopper>(*this, cpu, static_cast<int>(index), watchdog_.ward(index + 1));
  stopper->activate();
  return stopper->active();
}

bool Stoppers::is_left_alone(std::size_t index) const {
  return to_ns(Clock::now().time_since_epoch()) < left_alone_[index].until_ns;
}

// It is tried again at ever longer distances: each try costs the ticks until the watchdog notices.
void Stoppers::leave_alone(int cpu) {
  constexpr std::int64_t first_ns = 2'000'000'000, longest_ns = 64'000'000'000;
  const auto place = std::ranges::lower_bound(usable_, cpu);
  if (place == usable_.end() || *place != cpu) return;
  left_cpu_ = true;
  LeftAlone& left = left_alone_[static_cast<std::size_t>(place - usable_.begin())];
  const std::lock_guard lock(stoppers_lock_);
  left.for_ns = std::min(std::max(2 * left.for_ns, first_ns), longest_ns);
  left.until_ns = to_ns(Clock::now().time_since_epoch()) + left.for_ns;
}

bool Stoppers::need_other(int than) {
  return std::ranges::any_of(usable_, [&](int other) { return other != than && need(other); });
}

bool Stoppers::assign_elsewhere(Watch& watch, int cpu) {
  const auto found = std::ranges::find_if(usable_, [&](int other) { return other != cpu && need(other); });
  if (found == usable_.end()) return false;
  watch.cpu = *found;
  return true;
}

void Stoppers::assign(Watch& watch) {
  const int on = watch.thread->cpu();
  if (!is_preceded_by(watch) && need(on)) {
    watch.cpu = on;
  } else if (!assign_elsewhere(watch, on) && !usable_.empty()) {
    watch.cpu = usable_.front();
    (void)need(usable_.front());
  }
}

// Threads change their policy when they like. Which one they have is asked some times a second; until then,
// a stopper that one of them keeps from running is helped by the watchdog.
void Stoppers::settle_urgency(const Roster& roster, bool at_once) {
  constexpr Clock::duration ask_again = 100ms, ask_sleepers_again = 1s;
  const Clock::time_point now = Clock::now();
  if (!at_once && now - urgency_asked_ < ask_again) return;
  urgency_asked_ = now;
  const bool all = now - all_asked_ >= ask_sleepers_again;
  if (all) all_asked_ = now;
  Urgency highest;
  int needed = own_priority_;
  const int most = watchdog_.highest_priority();
  for (const std::shared_ptr<Watch>& watch : roster) {
    if (at_once || all || !watch->slept) {
      watch->urgency = urgency_of(watch->thread->tid());
      watch->held = !watch->urgency.load().is_ordinary() && is_held_on_a_cpu(watch->thread->tid());
    }
    const Urgency urgency = watch->urgency;
    highest = std::max(highest, urgency);
    if (may_step_above(*watch) && urgency >= Urgency::real_time(std::max(needed, 1)) && urgency.priority_above() != 0 &&
        urgency.priority_above() <= most)
      needed = urgency.priority_above();
  }
  step_to(needed);
  const bool alone = usable_.size() < 2;
  for (const std::shared_ptr<Watch>& watch : roster) {
    if (!is_preceded_by(*watch)) continue;
    precedence_.highest = std::max(precedence_.highest, watch->urgency.load());
    precedence_.may_move |= !may_step_above(*watch);
    if (alone) precedence_.shares_cpu |= !at_once && !watch->slept;
    else if (watch->cpu == watch->thread->cpu()) assign(*watch);
  }
  watchdog_.be_ordinary(alone && highest >= Urgency::real_time(Urgency::highest_priority));
}

void Stoppers::step_to(int priority) {
  if (priority == priority_) return;
  priority_ = priority;
  if (priority > own_priority_) precedence_.stepped_to = std::max(precedence_.stepped_to, priority);
  for (Stopper* const stopper : all()) stopper->step_to(priority);
}

// What a stopper does while it stands above the target's threads keeps them off its CPU, as a stop does: it
// is counted as one of a thread that does not exist.
void Stoppers::add_work(int cpu, std::int64_t ns) {
  if (!stands_above()) return;
  above_ns_ += ns;
  add_stop(-1 - cpu, ns);
}

Precedence Stoppers::precedence() const {
  Precedence precedence = precedence_;
  precedence.above_ns = above_ns_;
  precedence.left_cpu = left_cpu_;
  precedence.from_elsewhere = from_elsewhere_;
  return precedence;
}

bool Stoppers::retire(Stopper& stopper) {
  const std::lock_guard lock(stoppers_lock_);
  const auto other = std::ranges::find_if(
      stoppers_, [&](const auto& each) { return each != nullptr && each->active() && each.get() != &stopper; });
  if (other == stoppers_.end()) return false;
  stopper.deactivate();
  visit_watches([&](const std::shared_ptr<Watch>& watch) {
    if (watch->cpu == stopper.cpu()) watch->cpu = (*other)->cpu();
  });
  return true;
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

// Asks now and then which threads' logs are worth their cost (log_choice.h).
void Stoppers::choose_logs() {
  constexpr Clock::duration ask_again = 500ms;
  const Clock::time_point now = Clock::now();
  if (!takes_logs_ || now - logs_asked_ < ask_again) return;
  const Clock::duration passed = now - std::exchange(logs_asked_, now);
  for (const std::shared_ptr<Watch>& watch : *main_roster_) {
    const bool is_open = watch->switches != nullptr;
    const std::uint64_t runs = runs_of(*watch), before = std::exchange(watch->runs, runs);
    if (runs < before || (!is_open && runs == 0)) continue;  // the kernel does not report it, or the thread is gone
    const bool wants = watch->log_choice.wants_log(static_cast<std::int64_t>(runs - before), passed / grid_.interval(),
                                                   static_cast<double>(to_ns(passed)) / 1e9);
    if (wants == is_open || !watch->claim.try_take()) continue;
    if (wants) open_log(*watch);
    else watch->switches = nullptr, --logs_;
    watch->runs = runs_of(*watch);
    watch->claim.give_back();
  }
}

std::vector<std::shared_ptr<Watch>> Stoppers::watch(const std::vector<std::unique_ptr<Session>>& sessions,
                                                    const Session* but) {
  choose_logs();
  auto next = std::make_shared<Roster>();
  const Clock::time_point now = Clock::now();
  bool hurries = false;
  std::vector<Watch*> fresh;
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
      auto watch = std::make_shared<Watch>(*session, thread, now);
      open_log(*watch);
      watch->runs = runs_of(*watch);
      hurries |= !watch->urgency.load().is_ordinary();
      fresh.push_back(watch.get());
      next->push_back(std::move(watch));
    }
  }
  settle_urgency(*next, hurries);
  for (Watch* const watch : fresh) assign(*watch);
  if (fresh.empty() && kept == main_roster_->size()) return {};
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
    watch->request.drop();
    constexpr Clock::duration stops_within = 5ms;  // a thread that stops later is released without access to its
                                                   // session
    for (const Clock::time_point end = Clock::now() + stops_within; !watch->request.may_destroy(Clock::now() >= end);)
      (void)system::sleep_until(Clock::now() + 100us);
    if (watch->request.asked_by() != StopRequest::nobody) ++watch->not_stopped;
    if (watch->switches != nullptr) watch->switches = nullptr, --logs_;
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

// Not after the main thread has starved where it was kept.
void Stoppers::keep_off() {
  Ward& main = watchdog_.main();
  if (main.has_starved() && !main.stays_still()) return;
  std::vector<int> busy;
  for (const auto& watch : *main_roster_) {
    if (watch->slept) continue;
    // What is looked at from another CPU executes on its own all the same.
    const int cpu = is_preceded_by(*watch) ? watch->thread->cpu() : watch->cpu.load();
    if (is_usable(cpu)) busy.push_back(cpu);
  }
  std::ranges::sort(busy);
  busy.erase(std::unique(busy.begin(), busy.end()), busy.end());
  if (busy == kept_off_) return;
  std::vector<int> others;
  std::ranges::set_difference(usable_, busy, std::back_inserter(others));
  (void)stay_on(others.empty() ? usable_ : others);
  kept_off_ = std::move(busy);
  if (!others.empty() && !kept_off_.empty()) main.stays();
}

}  // namespace luaspy
