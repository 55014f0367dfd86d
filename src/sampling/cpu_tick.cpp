#include "sampling/cpu_tick.h"

#include <algorithm>

namespace luaspy {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

void CpuTick::run(const TickMoment& moment, bool in_time, bool placed) {
  moment_ = moment;
  placed_ = placed;
  candidates_.clear();
  met_ = {};
  host_.visit_threads([&](const Tracked& thread) {
    if (!thread->claim.try_take()) return;
    if (thread->ticks.number() < moment_.number && (thread->cpu == cpu_ || !thread->ticks.slept()) &&
        !is_asked(*thread))
      consider(thread);
    else thread->claim.give_back();
  });
  choose_executing();
  look_at_candidates(in_time);
  if (met_.thread != nullptr) look_at_met(in_time);
  for (const Candidate& candidate : candidates_) candidate.thread->claim.give_back();
}

// A thread that was asked to stop belongs to that CPU sampler until it stops. The tick of the request
// has been counted.
bool CpuTick::is_asked(TrackedThread& thread) {
  const int asked_by = thread.request.asked_by();
  if (asked_by == StopRequest::nobody) return false;
  if (asked_by != cpu_) return true;
  const Thread::Schedule now = thread.thread->schedule();
  const bool ran = now.runs == 0 || now.on_cpu != thread.ticks.schedule().on_cpu;
  account(thread, &now, false);
  if (looks_.adopt_unreported(thread, moment_)) host_.count_unreported();
  else ++(ran ? thread.unseen.not_stopped : thread.unseen.waited);  // a thread without a CPU cannot stop
  return true;
}

// The thread executed here when the tick was due if its CPU has been taken away since then. False:
// the log cannot answer that.
bool CpuTick::consider_by_log(const Tracked& thread) {
  const SwitchLog::Switch last = thread->switches->last();
  if (last.kind != SwitchLog::Switch::Kind::taken) return false;
  if (last.cpu == cpu_ && last.at >= moment_.due && met_.thread == nullptr) {
    thread->cpu = cpu_;
    needed_ = true;
    met_ = {thread, last};
    return true;
  }
  if (thread->cpu != cpu_) return false;
  wait(thread, nullptr);
  thread->claim.give_back();
  return true;
}

// The claim is kept for candidates and for met_, and given back for all others.
void CpuTick::consider(const Tracked& thread) {
  if (placed_ && thread->switches != nullptr && !host_.is_preceded_by(*thread) && consider_by_log(thread)) return;
  const bool mine = thread->cpu == cpu_;
  const Thread::Schedule now = thread->thread->schedule();
  const bool ran = now.runs == 0 || now.runs != thread->ticks.schedule().runs;
  if (mine && thread->ticks.slept() && !ran) {
    account(*thread, &now, true);
    if (!host_.options().idle) ++thread->unseen.idle;
    else if (TickResult* const found = results_.open(thread))
      found->kind = TickResult::Kind::asleep_again, results_.put();
    else ++thread->unseen.late;  // the main thread does not keep up
    return thread->claim.give_back();
  }
  if (!mine && !ran) return thread->claim.give_back();  // it has not moved
  consider_place(thread, now);
}

// Where a thread is that has moved, or has run since its last tick, or was not asleep then.
void CpuTick::consider_place(const Tracked& thread, const Thread::Schedule& now) {
  const bool mine = thread->cpu == cpu_, precedes = host_.is_preceded_by(*thread);
  const Thread::Place place = thread->thread->place();
  if (place.letter == 'R' && precedes) return consider_preceding(thread, now, place);
  if (place.letter == 'R' && place.cpu == cpu_) {
    thread->cpu = cpu_;
    needed_ = true;
    candidates_.push_back({thread, now, place.cpu, !placed_});
    return;
  }
  if (place.letter == 'R' && mine) {
    if (!host_.need(place.cpu)) {
      candidates_.push_back({thread, now, place.cpu, true});
      needed_ = true;
      return;
    }
    thread->cpu = place.cpu;
    thread->ticks.move();
  } else if (mine && (place.letter == '?' || place.letter == 'Z' || place.letter == 'X')) {
    account(*thread, &now, true);
    if (TickResult* const found = results_.open(thread)) found->loss = Loss::ended, results_.put();
    thread->ticks.end();
  } else if (mine) {
    looks_.read_asleep(thread, now, moment_);
  }
  thread->claim.give_back();
}

// A thread that can run and precedes this CPU sampler does not execute where the CPU sampler does. It may have when
// the tick was due, if the CPU sampler came late.
void CpuTick::consider_preceding(const Tracked& thread, const Thread::Schedule& now, const Thread::Place& place) {
  constexpr Clock::duration at_once = 200us;
  if (thread->cpu != cpu_) return thread->claim.give_back();
  needed_ = true;
  if (place.cpu != cpu_ || !placed_) {
    host_.count_from_elsewhere();
    candidates_.push_back({thread, now, place.cpu, true});
    return;
  }
  (void)host_.assign_elsewhere(*thread, cpu_);
  if (moment_.woke - moment_.due < at_once) wait(thread, &now);
  else lose_late(*thread, &now);
  thread->claim.give_back();
}

// Of the runnable threads of a CPU, at most one was executing: on this CPU until this CPU sampler woke, on
// another one still. There it is the one that had the most of it since it was last looked at; the stop
// shows whether that is true.
void CpuTick::choose_executing() {
  const bool alone = candidates_.size() == 1;
  bool found_here = met_.thread != nullptr;
  busiest_.clear();
  for (Candidate& candidate : candidates_) {
    if (candidate.remote) {
      const std::int64_t used = candidate.now.on_cpu - candidate.thread->ticks.schedule().on_cpu;
      const auto [busiest, is_first] = busiest_.try_emplace(candidate.cpu, &candidate, used);
      if (!is_first && used > busiest->second.second) busiest->second = {&candidate, used};
    } else if (!found_here) {
      found_here = candidate.executes = executes(*candidate.thread, candidate.now, alone);
    }
  }
  for (const auto& [cpu, busiest] : busiest_) busiest.first->executes = true;
}

void CpuTick::look_at_candidates(bool in_time) {
  for (const Candidate& candidate : candidates_) {
    if (!candidate.executes) {
      wait(candidate.thread, &candidate.now);
    } else if (in_time || (candidate.remote && placed_)) {
      account(*candidate.thread, &candidate.now, false);
      if (!looks_in_vain(*candidate.thread)) looks_.stop(candidate.thread, candidate.now, moment_, candidate.remote);
    } else {
      lose_late(*candidate.thread, &candidate.now);
    }
  }
}

void CpuTick::look_at_met(bool in_time) {
  if (in_time) {
    account(*met_.thread, nullptr, false);
    if (!looks_in_vain(*met_.thread)) looks_.read_without_stop(met_.thread, met_.lost, moment_);
  } else {
    lose_late(*met_.thread, nullptr);
  }
  met_.thread->claim.give_back();
  met_ = {};
}

void CpuTick::wait(const Tracked& thread, const Thread::Schedule* now) {
  account(*thread, now, false);
  if (!host_.options().idle) {
    ++thread->unseen.waited;
    return;
  }
  if (TickResult* const found = results_.open(thread)) found->kind = TickResult::Kind::waiting, results_.put();
  else ++thread->unseen.late;
}

// It executed, and the CPU sampler came too late to see where.
void CpuTick::lose_late(TrackedThread& thread, const Thread::Schedule* now) const {
  ++thread.unseen.late;
  account(thread, now, false);
}

bool CpuTick::looks_in_vain(TrackedThread& thread) const {
  if (thread.looks.is_due(moment_.number, host_.options().grid.interval())) return false;
  ++thread.unseen.in_vain;
  return true;
}

// A thread that had the CPU all the time since the last tick has it now. Otherwise the time at
// which its CPU time was last counted shows when it was taken off.
bool CpuTick::executes(const TrackedThread& thread, const Thread::Schedule& now, bool alone) {
  const std::int64_t on_cpu = now.on_cpu - thread.ticks.schedule().on_cpu;
  if (now.runs != 0 && on_cpu == 0) return false;
  constexpr std::int64_t off_at_most = 300'000;  // ns: caused by luaspy itself
  if (alone && on_cpu >= to_ns(moment_.woke - thread.ticks.schedule_at()) - off_at_most) return true;
  constexpr Clock::duration ask_again = 200ms;  // the clocks drift by some 100 ns per ms at most
  if (!clock_offset_ || moment_.woke - offset_asked_ > ask_again) {
    const std::optional<std::int64_t> own = looks_.counted_at();
    if (!own) return true;  // the kernel does not report it: what the stop finds out has to suffice
    clock_offset_ = to_ns(moment_.woke.time_since_epoch()) - *own;
    offset_asked_ = moment_.woke;
  }
  const std::optional<std::int64_t> counted = thread.thread->counted_at();
  constexpr std::int64_t just_now = 60'000;  // ns: waking takes some µs, the offset is some µs old
  return !counted || *counted + *clock_offset_ > to_ns(moment_.woke.time_since_epoch()) - just_now;
}

void CpuTick::account(TrackedThread& thread, const Thread::Schedule* now, bool slept) const {
  thread.ticks.account(moment_, host_.options().grid.interval(), *thread.thread, now, slept, thread.unseen);
}

}  // namespace luaspy
