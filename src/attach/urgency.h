#pragma once
// How urgent the kernel takes a thread to be: which of two threads that want the same CPU gets it.
// sched(7): a thread under SCHED_DEADLINE precedes all others, one under SCHED_FIFO or SCHED_RR with a
// higher priority precedes those with a lower one, and all of these precede ordinary threads for as long
// as they want to run.

#include <pthread.h>
#include <sys/types.h>

#include <compare>
#include <string>
#include <vector>

namespace luaspy {

class Urgency {
 public:
  static constexpr int highest_priority = 99;

  constexpr Urgency() = default;  // of an ordinary thread
  static constexpr Urgency real_time(int priority) { return Urgency(priority); }
  static constexpr Urgency deadline() { return Urgency(highest_priority + 1); }

  constexpr bool is_ordinary() const { return rank_ == 0; }
  constexpr bool is_deadline() const { return rank_ > highest_priority; }
  // 1 to 99, of a real-time thread; 0 of others.
  constexpr int priority() const { return is_deadline() ? 0 : rank_; }
  // The lowest real-time priority that precedes it; 0 if none does.
  constexpr int priority_above() const { return rank_ < highest_priority ? rank_ + 1 : 0; }
  constexpr auto operator<=>(const Urgency&) const = default;

 private:
  explicit constexpr Urgency(int rank) : rank_(rank) {}
  int rank_ = 0;
};

// "real-time priority 10", "the deadline policy"; "" of an ordinary thread.
std::string urgency_text(Urgency urgency);

// Of any thread, by sched_getattr(2), which needs no rights and takes less than 1 µs. An ordinary one if the
// thread is gone, or if a security module forbids to ask.
Urgency urgency_of(pid_t tid);

// Whether it may run on one CPU only. A real-time thread that may run on others is moved there by the kernel as
// soon as one of a higher priority takes its CPU (kernel/sched/rt.c, push_rt_task()).
bool is_held_on_a_cpu(pid_t tid);

// ---- For luaspy's own threads: any thread of luaspy may call these for another one, so that one that
// does not get a CPU can be helped. Which CPUs a thread may run on. The kernel leaves it on its CPU if that
// is among them.
bool move(pid_t own_thread, const std::vector<int>& cpus);
bool move(pthread_t own_thread, const std::vector<int>& cpus);
// A real-time thread of that priority (SCHED_FIFO); what it starts is ordinary. False if luaspy has no
// right to that: root has, and others up to RLIMIT_RTPRIO.
bool make_real_time(pid_t own_thread, int priority);
// An ordinary thread again.
void make_ordinary(pid_t own_thread);
void make_ordinary(pthread_t own_thread);
// The calling thread, an ordinary one, wants short slices: Linux from 6.12 on then prefers it to threads whose slices
// are longer (sched_setattr(2), sched_runtime).
void ask_for_short_slices();
// Makes it what the calling thread is.
void make_like_this(pthread_t own_thread);
// Gives it the highest priority that it may have, and returns that; 0: it may have none, and stays as it is.
int make_most_urgent(pthread_t own_thread);

}  // namespace luaspy
