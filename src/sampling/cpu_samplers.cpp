#include "sampling/cpu_samplers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "attach/own_cpu.h"
#include "sampling/cpu_sampler.h"
#include "system/calls.h"

namespace luaspy {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

namespace {

// How often the thread was given a CPU; 0: the kernel does not report it.
std::uint64_t runs_of(const TrackedThread& thread) {
  return thread.switches != nullptr ? thread.switches->runs() : thread.thread->schedule().runs;
}

}  // namespace

CpuSamplers::CpuSamplers(CpuSamplerOptions options, double max_stopped, bool always_stop, Watchdog& watchdog)
    : options_(std::move(options)),
      takes_logs_(!always_stop),
      usable_(usable_cpus()),
      samplers_(usable_.size()),
      watchdog_(watchdog),
      left_alone_(usable_.size()),
      gate_(max_stopped / 100, options_.grid.time_of(0)) {
  const Urgency chosen = urgency_of(0);  // by the user, for all of luaspy
  own_priority_ = chosen.is_ordinary() ? std::min(watchdog.highest_priority(), 1) : chosen.priority();
  priority_ = own_priority_;
}

CpuSamplers::~CpuSamplers() { stop(); }

void CpuSamplers::stop() {
  {
    const std::lock_guard lock(samplers_lock_);
    if (std::exchange(stopped_, true)) return;
  }
  if (!kept_off_.empty()) (void)stay_on(usable_);
  const std::vector<CpuSampler*> samplers = all();
  for (CpuSampler* const sampler : samplers) sampler->end();
  // They may starve. The watchdog lets them end within 100 ms, unless it starves, too.
  constexpr Clock::duration patience = 30ms, long_patience = 150ms;
  const Clock::time_point asked = Clock::now();
  bool moved = false, lowered = false;
  for (CpuSampler* const sampler : samplers) {
    while (!sampler->has_ended()) {
      sampler->interrupt();
      (void)system::sleep_until(Clock::now() + 1ms);
      if (!moved && Clock::now() - asked >= patience) {
        moved = true;
        for (CpuSampler* const each : samplers) each->free_from_cpu(usable_);
      }
      if (!lowered && Clock::now() - asked >= long_patience) {
        lowered = true;
        for (CpuSampler* const each : samplers) each->lower();
      }
    }
  }
}

bool CpuSamplers::is_usable(int cpu) const { return std::ranges::binary_search(usable_, cpu); }

bool CpuSamplers::need(int cpu) {
  const auto place = std::ranges::lower_bound(usable_, cpu);
  if (place == usable_.end() || *place != cpu) return false;
  const auto index = static_cast<std::size_t>(place - usable_.begin());
  if (is_left_alone(index)) return false;
  const std::lock_guard lock(samplers_lock_);
  if (stopped_) return false;
  std::unique_ptr<CpuSampler>& sampler = samplers_[index];
  CpuSamplerHost& host = *this;
  if (sampler == nullptr)
    sampler = std::make_unique<CpuSampler>(host, cpu, static_cast<int>(index), watchdog_.ward(index + 1));
  sampler->activate();
  return sampler->active();
}

bool CpuSamplers::is_left_alone(std::size_t index) const {
  return to_ns(Clock::now().time_since_epoch()) < left_alone_[index].until_ns;
}

// It is tried again at ever longer distances: each try costs the ticks until the watchdog notices.
void CpuSamplers::leave_alone(int cpu) {
  constexpr std::int64_t first_ns = 2'000'000'000, longest_ns = 64'000'000'000;
  const auto place = std::ranges::lower_bound(usable_, cpu);
  if (place == usable_.end() || *place != cpu) return;
  left_cpu_ = true;
  LeftAlone& left = left_alone_[static_cast<std::size_t>(place - usable_.begin())];
  const std::lock_guard lock(samplers_lock_);
  left.for_ns = std::min(std::max(2 * left.for_ns, first_ns), longest_ns);
  left.until_ns = to_ns(Clock::now().time_since_epoch()) + left.for_ns;
}

bool CpuSamplers::need_other(int than) {
  return std::ranges::any_of(usable_, [&](int other) { return other != than && need(other); });
}

bool CpuSamplers::assign_elsewhere(TrackedThread& thread, int cpu) {
  const auto found = std::ranges::find_if(usable_, [&](int other) { return other != cpu && need(other); });
  if (found == usable_.end()) return false;
  thread.cpu = *found;
  return true;
}

void CpuSamplers::assign(TrackedThread& thread) {
  const int on = thread.thread->cpu();
  if (!is_preceded_by(thread) && need(on)) {
    thread.cpu = on;
  } else if (!assign_elsewhere(thread, on) && !usable_.empty()) {
    thread.cpu = usable_.front();
    (void)need(usable_.front());
  }
}

// Threads change their policy when they like. Which one they have is asked some times a second; until then,
// a CPU sampler that one of them keeps from running is helped by the watchdog.
void CpuSamplers::ask_urgency(const Roster& roster, bool at_once) {
  constexpr Clock::duration ask_again = 100ms, ask_sleepers_again = 1s;
  const Clock::time_point now = Clock::now();
  if (!at_once && now - urgency_asked_ < ask_again) return;
  urgency_asked_ = now;
  const bool all = now - all_asked_ >= ask_sleepers_again;
  if (all) all_asked_ = now;
  Urgency highest;
  int needed = own_priority_;
  const int most = watchdog_.highest_priority();
  for (const std::shared_ptr<TrackedThread>& thread : roster) {
    if (at_once || all || !thread->ticks.slept()) {
      thread->urgency = urgency_of(thread->thread->tid());
      thread->held = !thread->urgency.load().is_ordinary() && is_held_on_a_cpu(thread->thread->tid());
    }
    const Urgency urgency = thread->urgency;
    highest = std::max(highest, urgency);
    if (may_step_above(*thread) && urgency >= Urgency::real_time(std::max(needed, 1)) &&
        urgency.priority_above() != 0 && urgency.priority_above() <= most)
      needed = urgency.priority_above();
  }
  step_to(needed);
  const bool alone = usable_.size() < 2;
  for (const std::shared_ptr<TrackedThread>& thread : roster) {
    if (!is_preceded_by(*thread)) continue;
    precedence_.highest = std::max(precedence_.highest, thread->urgency.load());
    precedence_.may_move |= !may_step_above(*thread);
    if (alone) precedence_.shares_cpu |= !at_once && !thread->ticks.slept();
    else if (thread->cpu == thread->thread->cpu()) assign(*thread);
  }
  watchdog_.be_ordinary(alone && highest >= Urgency::real_time(Urgency::highest_priority));
}

void CpuSamplers::step_to(int priority) {
  if (priority == priority_) return;
  priority_ = priority;
  if (priority > own_priority_) precedence_.stepped_to = std::max(precedence_.stepped_to, priority);
  for (CpuSampler* const sampler : all()) sampler->step_to(priority);
}

// What a CPU sampler does while it stands above the target's threads keeps them off its CPU, as a stop does: it
// is counted as one of a thread that does not exist.
void CpuSamplers::add_work(int cpu, std::int64_t ns) {
  if (!stands_above()) return;
  above_ns_ += ns;
  add_stop(-1 - cpu, ns);
}

Precedence CpuSamplers::precedence() const {
  Precedence precedence = precedence_;
  precedence.above_ns = above_ns_;
  precedence.left_cpu = left_cpu_;
  precedence.from_elsewhere = from_elsewhere_;
  return precedence;
}

bool CpuSamplers::retire(CpuSampler& sampler) {
  const std::lock_guard lock(samplers_lock_);
  const auto other = std::ranges::find_if(
      samplers_, [&](const auto& each) { return each != nullptr && each->active() && each.get() != &sampler; });
  if (other == samplers_.end()) return false;
  sampler.deactivate();
  visit_threads([&](const std::shared_ptr<TrackedThread>& thread) {
    if (thread->cpu == sampler.cpu()) thread->cpu = (*other)->cpu();
  });
  return true;
}

// The main thread may replace the list meanwhile, so it is held.
void CpuSamplers::visit_threads(const std::function<void(const std::shared_ptr<TrackedThread>&)>& visit) const {
  const std::shared_ptr<const Roster> held = std::atomic_load(&roster_);
  for (const std::shared_ptr<TrackedThread>& thread : *held) visit(thread);
}

// Each log costs a file and two pages of locked memory. If it is not allowed for one thread, it is
// not tried for others.
void CpuSamplers::open_log(TrackedThread& thread) {
  constexpr int most = 256;
  if (!takes_logs_ || logs_ == most) return;
  thread.switches = SwitchLog::open(thread.thread->tid());
  if (thread.switches != nullptr) ++logs_;
  else if (thread.thread->cpu() != -1) takes_logs_ = false;
}

// Asks now and then which threads' logs are worth their cost (log_choice.h).
void CpuSamplers::choose_logs() {
  constexpr Clock::duration ask_again = 500ms;
  const Clock::time_point now = Clock::now();
  if (!takes_logs_ || now - logs_asked_ < ask_again) return;
  const Clock::duration passed = now - std::exchange(logs_asked_, now);
  for (const std::shared_ptr<TrackedThread>& thread : *main_roster_) {
    const bool is_open = thread->switches != nullptr;
    const std::uint64_t runs = runs_of(*thread), before = std::exchange(thread->runs, runs);
    if (runs < before || (!is_open && runs == 0)) continue;  // the kernel does not report it, or the thread is gone
    const bool wants = thread->log_choice.wants_log(static_cast<std::int64_t>(runs - before),
                                                    passed / options_.grid.interval(),
                                                    static_cast<double>(to_ns(passed)) / 1e9);
    if (wants == is_open || !thread->claim.try_take()) continue;
    if (wants) open_log(*thread);
    else thread->switches = nullptr, --logs_;
    thread->runs = runs_of(*thread);
    thread->claim.give_back();
  }
}

std::vector<std::shared_ptr<TrackedThread>> CpuSamplers::track(const std::vector<SampledProcess*>& processes) {
  choose_logs();
  auto next = std::make_shared<Roster>();
  const Clock::time_point now = Clock::now();
  bool hurries = false;
  std::vector<TrackedThread*> fresh;
  std::size_t kept = 0;
  for (SampledProcess* const process : processes) {
    for (const std::shared_ptr<Thread>& each : process->threads()) {
      const auto known = known_.find(each.get());
      if (known != known_.end()) {
        next->push_back(known->second);
        ++kept;
        continue;
      }
      auto thread = std::make_shared<TrackedThread>(*process, each, now);
      open_log(*thread);
      thread->runs = runs_of(*thread);
      hurries |= !thread->urgency.load().is_ordinary();
      fresh.push_back(thread.get());
      next->push_back(std::move(thread));
    }
  }
  ask_urgency(*next, hurries);
  for (TrackedThread* const thread : fresh) assign(*thread);
  if (fresh.empty() && kept == main_roster_->size()) return {};
  const std::shared_ptr<const Roster> old = std::exchange(main_roster_, next);
  known_.clear();
  for (const auto& thread : *next) known_[thread->thread.get()] = thread;
  std::atomic_store(&roster_, main_roster_);
  std::vector<std::shared_ptr<TrackedThread>> left;
  for (const auto& thread : *old) {
    if (known_.contains(thread->thread.get())) continue;
    left.push_back(thread);
    wait_until_unused(*thread);
  }
  return left;
}

// The process of a thread that is looked at now may be gone afterwards.
void CpuSamplers::wait_until_unused(TrackedThread& thread) {
  while (!thread.claim.try_take()) {
    interrupt_long_waits();
    (void)system::sleep_until(Clock::now() + 100us);
  }
  thread.request.drop();
  constexpr Clock::duration stops_within = 5ms;  // a thread that stops later is released without access to its process
  for (const Clock::time_point end = Clock::now() + stops_within; !thread.request.may_destroy(Clock::now() >= end);)
    (void)system::sleep_until(Clock::now() + 100us);
  if (thread.request.asked_by() != StopRequest::nobody) ++thread.unseen.not_stopped;
  if (thread.switches != nullptr) thread.switches = nullptr, --logs_;
}

std::vector<CpuSampler*> CpuSamplers::all() const {
  const std::lock_guard lock(samplers_lock_);
  std::vector<CpuSampler*> all;
  for (const auto& sampler : samplers_) {
    if (sampler != nullptr) all.push_back(sampler.get());
  }
  return all;
}

void CpuSamplers::drain(Clock::time_point until, const std::function<void(TickResult&)>& consume) {
  const std::vector<CpuSampler*> samplers = all();
  for (;;) {
    ResultRing* first = nullptr;
    for (CpuSampler* const sampler : samplers) {
      ResultRing& ring = sampler->results();
      if (ring.front() == nullptr || ring.front()->at > until) continue;
      if (first == nullptr || ring.front()->number < first->front()->number) first = &ring;
    }
    if (first == nullptr) return;
    consume(*first->front());
    first->pop();
  }
}

void CpuSamplers::interrupt_long_waits() {
  constexpr std::int64_t wait_at_most = 50'000'000;  // ns
  const std::int64_t now = to_ns(Clock::now().time_since_epoch());
  for (CpuSampler* const sampler : all()) {
    const std::int64_t since = sampler->waits_since();
    if (since != 0 && now - since > wait_at_most) sampler->interrupt();
  }
}

// Not after the main thread has starved where it was kept.
void CpuSamplers::keep_off() {
  Ward& main = watchdog_.main();
  if (main.has_starved() && !main.stays_still()) return;
  std::vector<int> busy;
  for (const auto& thread : *main_roster_) {
    if (thread->ticks.slept()) continue;
    // What is looked at from another CPU executes on its own all the same.
    const int cpu = is_preceded_by(*thread) ? thread->thread->cpu() : thread->cpu.load();
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
