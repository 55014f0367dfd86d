// The tick: which of the target's threads executed here when it was due. All others slept, waited for a CPU, or are
// looked at elsewhere.

#include <algorithm>
#include <limits>

#include "sampling/cpu_sampler.h"

namespace luaspy {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

void CpuSampler::tick(std::int64_t number, Clock::time_point due) {
  if (!all_.begin_tick(number, woke_)) return;
  const bool in_time = real_time_ || came_at_once(due);
  candidates_.clear();
  met_ = {};
  due_ = due;
  all_.visit_watches([&](const std::shared_ptr<TrackedThread>& watch) {
    if (!watch->claim.try_take()) return;
    if (watch->tick < number && (watch->cpu == cpu_ || !watch->slept) && !is_asked(*watch, number))
      consider(watch, number, due);
    else watch->claim.give_back();
  });
  settle_candidates(number, in_time);
}

// A CPU sampler that has to wait for the CPU gets it when the target gives it up: at the end of its
// time slices, and at system calls that make the kernel check the clock. That biases the samples.
// Measured as an ordinary user beside 8 threads, a call that takes 2.1 % of the time had 2.3 % of
// the ticks that came within 30 µs, 4.2 % within 60 and 6.5 % within 150. A timer that expires late
// does no harm, because the target does not influence it.
bool CpuSampler::came_at_once(Clock::time_point due) const {
  constexpr std::int64_t at_once = 15'000;  // ns
  const Thread::Schedule now = own_thread_->schedule();
  if (now.runs == 0) return woke_ - due < 40us;  // the kernel does not report it
  return now.waited_for_cpu - waited_before_ < at_once;
}

// A thread that was asked to stop belongs to that CPU sampler until it stops. The tick of the request
// has been counted.
bool CpuSampler::is_asked(TrackedThread& watch, std::int64_t number) {
  const int asked_by = watch.request.asked_by();
  if (asked_by == StopRequest::nobody) return false;
  if (asked_by != cpu_) return true;
  const Thread::Schedule now = watch.thread->schedule();
  const bool ran = now.runs == 0 || now.on_cpu != watch.schedule.on_cpu;
  account(watch, number, &now, false);
  constexpr Clock::duration overdue = 1s;
  const auto asked = std::ranges::find_if(asked_, [&](const Asked& each) { return each.watch.get() == &watch; });
  if (asked != asked_.end() && woke_ - asked->woke > overdue && asked->stop->take_unheard()) {
    ++all_.unheard_;
    Asked taken = std::move(*asked);
    asked_.erase(asked);
    arrived(std::move(taken));
    return true;
  }
  ++(ran ? watch.not_stopped : watch.waited);  // a thread without a CPU cannot stop
  return true;
}

// The thread executed here when the tick was due if its CPU has been taken away since then. False:
// the log cannot answer that.
bool CpuSampler::consider_by_log(const std::shared_ptr<TrackedThread>& watch, std::int64_t number,
                                 Clock::time_point due) {
  const SwitchLog::Switch last = watch->switches->last();
  if (last.kind != SwitchLog::Switch::Kind::taken) return false;
  if (last.cpu == cpu_ && last.at >= due && met_.watch == nullptr) {
    watch->cpu = cpu_;
    asked_again_ = true;
    met_ = {watch, last};
    return true;
  }
  if (watch->cpu != cpu_) return false;
  waits(watch, number, nullptr);
  watch->claim.give_back();
  return true;
}

// The claim is kept for candidates and for met_, and given back for all others.
void CpuSampler::consider(const std::shared_ptr<TrackedThread>& watch, std::int64_t number, Clock::time_point due) {
  if (placed_ && watch->switches != nullptr && !all_.is_preceded_by(*watch) && consider_by_log(watch, number, due))
    return;
  const bool mine = watch->cpu == cpu_;
  const Thread::Schedule now = watch->thread->schedule();
  const bool ran = now.runs == 0 || now.runs != watch->schedule.runs;
  if (mine && watch->slept && !ran) {
    account(*watch, number, &now, true);
    if (!all_.idle_) ++watch->idle;
    else if (TickResult* const found = open_found(watch, number)) found->kind = TickResult::Kind::asleep_again, put();
    else ++watch->late;  // the main thread does not keep up
    return watch->claim.give_back();
  }
  if (!mine && !ran) return watch->claim.give_back();  // it has not moved
  consider_place(watch, now, number, due);
}

// Where a thread is that has moved, or has run since its last tick, or was not asleep then.
void CpuSampler::consider_place(const std::shared_ptr<TrackedThread>& watch, const Thread::Schedule& now,
                                std::int64_t number, Clock::time_point due) {
  const bool mine = watch->cpu == cpu_, precedes = all_.is_preceded_by(*watch);
  const Thread::Place place = watch->thread->place();
  if (place.letter == 'R' && precedes) return consider_preceding(watch, now, place, number, due);
  if (place.letter == 'R' && place.cpu == cpu_) {
    watch->cpu = cpu_;
    asked_again_ = true;
    candidates_.push_back({watch, now, place.cpu, !placed_});
    return;
  }
  if (place.letter == 'R' && mine) {
    if (all_.need(place.cpu)) {
      watch->cpu = place.cpu;
      watch->moved = true;
    } else {
      candidates_.push_back({watch, now, place.cpu, true});
      asked_again_ = true;
      return;
    }
  } else if (mine && (place.letter == '?' || place.letter == 'Z' || place.letter == 'X')) {
    account(*watch, number, &now, true);
    watch->tick = std::numeric_limits<std::int64_t>::max();
    if (TickResult* const found = open_found(watch, number))
      found->kind = TickResult::Kind::loss, found->loss = Loss::ended, put();
  } else if (mine) {
    look_at_sleeping(watch, now, number);
  }
  watch->claim.give_back();
}

// A thread that can run and precedes this CPU sampler does not execute where the CPU sampler does. It may have when
// the tick was due, if the CPU sampler came late.
void CpuSampler::consider_preceding(const std::shared_ptr<TrackedThread>& watch, const Thread::Schedule& now,
                                    const Thread::Place& place, std::int64_t number, Clock::time_point due) {
  constexpr Clock::duration at_once = 200us;
  if (watch->cpu != cpu_) return watch->claim.give_back();
  asked_again_ = true;
  if (place.cpu != cpu_ || !placed_) {
    all_.from_elsewhere_ = true;
    candidates_.push_back({watch, now, place.cpu, true});
    return;
  }
  (void)all_.assign_elsewhere(*watch, cpu_);
  if (woke_ - due < at_once) {
    waits(watch, number, &now);
  } else {
    ++watch->late;
    account(*watch, number, &now, false);
  }
  watch->claim.give_back();
}

// Of the runnable threads of a CPU, at most one was executing: on this CPU until this CPU sampler woke, on
// another one still. There it is the one that had the most of it since it was last looked at; the stop
// shows whether that is true.
void CpuSampler::choose_executing() {
  const bool alone = candidates_.size() == 1;
  bool found_here = met_.watch != nullptr;
  busiest_.clear();
  for (Candidate& candidate : candidates_) {
    if (candidate.remote) {
      const std::int64_t used = candidate.now.on_cpu - candidate.watch->schedule.on_cpu;
      const auto [busiest, is_first] = busiest_.try_emplace(candidate.cpu, &candidate, used);
      if (!is_first && used > busiest->second.second) busiest->second = {&candidate, used};
    } else if (!found_here) {
      found_here = candidate.executes = executes(*candidate.watch, candidate.now, alone);
    }
  }
  for (const auto& [cpu, busiest] : busiest_) busiest.first->executes = true;
}

void CpuSampler::settle_candidates(std::int64_t number, bool in_time) {
  choose_executing();
  for (const Candidate& candidate : candidates_) {
    if (!candidate.executes) {
      waits(candidate.watch, number, &candidate.now);
    } else if (in_time || (candidate.remote && placed_)) {
      ask(candidate.watch, candidate.now, number, candidate.remote);
    } else {
      ++candidate.watch->late;
      account(*candidate.watch, number, &candidate.now, false);
    }
  }
  if (met_.watch != nullptr) {
    if (in_time) {
      look_at_met(number);
    } else {
      ++met_.watch->late;
      account(*met_.watch, number, nullptr, false);
    }
    met_.watch->claim.give_back();
    met_ = {};
  }
  for (const Candidate& candidate : candidates_) candidate.watch->claim.give_back();
}

void CpuSampler::waits(const std::shared_ptr<TrackedThread>& watch, std::int64_t number, const Thread::Schedule* now) {
  account(*watch, number, now, false);
  if (!all_.idle_) {
    ++watch->waited;
    return;
  }
  if (TickResult* const found = open_found(watch, number)) found->kind = TickResult::Kind::waiting, put();
  else ++watch->late;
}

// A thread that had the CPU all the time since the last tick has it now. Otherwise the time at
// which its CPU time was last counted shows when it was taken off.
bool CpuSampler::executes(const TrackedThread& watch, const Thread::Schedule& now, bool alone) {
  const std::int64_t on_cpu = now.on_cpu - watch.schedule.on_cpu;
  if (now.runs != 0 && on_cpu == 0) return false;
  constexpr std::int64_t off_at_most = 300'000;  // ns: caused by luaspy itself
  if (alone && on_cpu >= to_ns(woke_ - watch.schedule_at) - off_at_most) return true;
  constexpr Clock::duration ask_again = 200ms;  // the clocks drift by some 100 ns per ms at most
  if (!clock_offset_ || woke_ - offset_asked_ > ask_again) {
    const std::optional<std::int64_t> own = own_thread_->counted_at();
    if (!own) return true;  // the kernel does not report it: what the stop finds out has to suffice
    clock_offset_ = to_ns(woke_.time_since_epoch()) - *own;
    offset_asked_ = woke_;
  }
  const std::optional<std::int64_t> counted = watch.thread->counted_at();
  constexpr std::int64_t just_now = 60'000;  // ns: waking takes some µs, the offset is some µs old
  return !counted || *counted + *clock_offset_ > to_ns(woke_.time_since_epoch()) - just_now;
}

// Accounts for the thread's ticks since its last one that no CPU sampler has handled, and for this one.
// `now`: null if the schedule has not been read.
void CpuSampler::account(TrackedThread& watch, std::int64_t number, const Thread::Schedule* now, bool slept) {
  const std::int64_t skipped = all_.skipped_;
  Thread::Schedule asked;
  const auto ask_now = [&] {
    if (now == nullptr) asked = watch.thread->schedule(), now = &asked;
  };
  if (watch.tick == -1) {
    watch.tick = number - 1;
    watch.skipped_seen = skipped;
    watch.at = std::max(watch.at, woke_ - all_.grid_.interval());
    ask_now();
    watch.schedule = *now;
    watch.schedule_at = woke_;
  }
  passed_ns_ = to_ns(woke_ - watch.at);
  const std::int64_t missed = std::max<std::int64_t>(number - watch.tick - 1 - (skipped - watch.skipped_seen), 0);
  if (missed != 0) {
    // It counts as executing at the share of them that it was on a CPU.
    ask_now();
    const std::int64_t since = to_ns(woke_ - watch.schedule_at),
                       ran = std::clamp<std::int64_t>(now->on_cpu - watch.schedule.on_cpu, 0, since);
    const std::int64_t executed = now->runs == 0 || since == 0 ? missed : (missed * ran + since / 2) / since;
    (watch.moved ? watch.elsewhere : watch.late) += executed;
    (watch.slept ? watch.idle : watch.waited) += missed - executed;
  }
  if (now != nullptr) watch.schedule = *now, watch.schedule_at = woke_;
  watch.moved = false;
  watch.skipped_seen = skipped;
  watch.tick = number;
  watch.at = woke_;
  watch.slept = slept;
}

}  // namespace luaspy
