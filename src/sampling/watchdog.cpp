#include "sampling/watchdog.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "attach/own_cpu.h"
#include "attach/urgency.h"
#include "system/signals.h"

namespace luaspy {

using Clock = system::Clock;
using system::to_ns;

namespace {

// The priority that the main thread has been lent, and what it was before. A signal handler takes it back.
std::atomic<std::int64_t> lent_until_ns = 0;  // 0: none
std::atomic<pid_t> lent_to = 0;
std::atomic<int> lent_before = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

void take_back() {
  const std::int64_t until = lent_until_ns;
  if (until == 0 || to_ns(Clock::now().time_since_epoch()) < until) return;
  lent_until_ns = 0;
  if (lent_before != 0) (void)make_real_time(lent_to, lent_before);
  else make_ordinary(lent_to);
}

void lend(pid_t main, int priority) {
  if (lent_until_ns == 0) lent_before = urgency_of(main).priority();
  lent_to = main;
  lent_until_ns = to_ns((Clock::now() + Watchdog::lent).time_since_epoch());
  system::at_each_alarm(take_back);
  (void)make_real_time(main, priority);
}

}  // namespace

void Ward::begin() {
  starved_ns_ = 0;
  stays_ = lowered_ = false;
  expect(Clock::now());
  tid_ = ::gettid();
}

Remedy remedy_for(const Starving& thread, bool may_raise) {
  constexpr int hopeless = 4;  // looks
  if (thread.ends && may_raise) return Remedy::raise;
  if (thread.stays) return Remedy::move;
  if (thread.real_time && thread.looks >= hopeless) return Remedy::lower;
  return Remedy::none;
}

bool is_late(std::int64_t now_ns, std::int64_t due_ns, bool ends) {
  constexpr std::int64_t patience = 40'000'000, patience_at_end = 10'000'000;  // ns
  return now_ns - (ends ? patience_at_end : patience) > due_ns;
}

bool CpuProgress::stands_still(const Thread::Schedule& now) {
  const auto before = std::exchange(before_, now);
  return before && now.runs != 0 && now.on_cpu == before->on_cpu && now.runs == before->runs;
}

// Its own urgency is never changed by the thread itself: that might be the last thing that it does.
Watchdog::Watchdog(std::size_t wards, std::vector<int> cpus) : wards_(wards), seen_(wards), cpus_(std::move(cpus)) {
  main().begin();
  main().pause();
  exists_ = start_thread(thread_, run, this);
  if (exists_) highest_priority_ = make_most_urgent(thread_);
}

// It ends at once, unless it starves itself: as an ordinary thread it does not for ever.
Watchdog::~Watchdog() {
  if (!exists_) return;
  constexpr int enough = 20;  // ms
  over_ = true;
  for (int i = 0; i < enough && !has_ended_; ++i) {
    pthread_kill(thread_, SIGALRM);
    (void)system::sleep_until(Clock::now() + std::chrono::milliseconds(1));
  }
  if (!has_ended_) be_ordinary(true);
  pthread_join(thread_, nullptr);
}

void Watchdog::be_ordinary(bool ordinary) {
  if (!exists_ || highest_priority_ == 0 || ordinary_.exchange(ordinary) == ordinary) return;
  if (ordinary) make_ordinary(thread_);
  else (void)make_most_urgent(thread_);
}

void* Watchdog::run(void* self) {
  Watchdog& its = *static_cast<Watchdog*>(self);
  while (!its.over_) {
    its.look();
    if (!its.over_) (void)system::sleep_until(Clock::now() + often);
  }
  its.has_ended_ = true;
  return nullptr;
}

void Watchdog::look() {
  const std::int64_t now = to_ns(Clock::now().time_since_epoch());
  const bool ends = now >= ends_ns_ || system::end_requested() != 0 || system::end_is_pending(),
             may_raise = highest_priority_ != 0 && !ordinary_;
  for (std::size_t i = 0; i < wards_.size(); ++i) {
    Ward& ward = wards_[i];
    Seen& seen = seen_[i];
    if (!starves(ward, seen, now, ends)) {
      seen.looks = 0;
      continue;
    }
    ward.starved_ns_ = now;
    ++seen.looks;
    const bool real_time = !urgency_of(seen.tid).is_ordinary();
    help(i, remedy_for({ward.stays_ && cpus_.size() > 1, real_time, ends, seen.looks}, may_raise));
  }
}

// It has wanted to run since the last look, could have, and was not given a CPU.
bool Watchdog::starves(Ward& ward, Seen& seen, std::int64_t now, bool ends) const {
  const pid_t tid = ward.tid_;
  if (tid != seen.tid) {
    seen = {};
    seen.tid = tid;
  }
  if (tid == 0 || !is_late(now, ward.due_ns_, ends)) {
    seen.progress.forget();
    return false;
  }
  if (seen.thread == nullptr) seen.thread = std::make_unique<Thread>(::getpid(), tid);
  return seen.progress.stands_still(seen.thread->schedule()) && seen.thread->state_letter() == 'R';
}

void Watchdog::help(std::size_t index, Remedy remedy) {
  const pid_t tid = seen_[index].tid;
  const auto move_away = [&] {
    wards_[index].stays_ = false;
    (void)luaspy::move(tid, others_than(seen_[index].thread->cpu(), cpus_));
  };
  switch (remedy) {
    case Remedy::none:
      break;
    case Remedy::move:
      move_away();
      break;
    case Remedy::raise:
      if (wards_[index].stays_) move_away();
      if (index == 0) lend(tid, highest_priority_);
      else (void)make_real_time(tid, highest_priority_);
      break;
    case Remedy::lower:
      wards_[index].lowered_ = true;
      make_ordinary(tid);
      break;
  }
}

void Watchdog::help_main_to_end() {
  constexpr std::int64_t just_before = 2'000'000'000;  // ns
  const std::int64_t since = to_ns(Clock::now().time_since_epoch()) - main().starved_ns_;
  if (since < just_before && highest_priority_ != 0 && !ordinary_) lend(main().tid(), highest_priority_);
}

}  // namespace luaspy
