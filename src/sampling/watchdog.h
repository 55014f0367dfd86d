#pragma once
// THE END IS KEPT. A real-time thread that computes keeps all threads of lower priority off its CPU, for as
// long as it likes: the target's own, or any other. luaspy's threads that look run on the target's CPUs, so
// they may starve there, with a lock or a thread of the target in their hands; and the main thread waits for
// them. The watchdog is a thread that waits for nobody. It looks at the others some times a second, and
// helps one that wants to run but gets no CPU: onto another CPU, or, when the recording should have ended,
// above whatever keeps it from running.
//
// What no thread can help against: all CPUs that luaspy may use are taken by threads of priority 99 or of
// the deadline policy, or luaspy may not be a real-time thread. Then it gets what the kernel leaves to
// ordinary threads: 50 ms of each second (/proc/sys/kernel/sched_rt_runtime_us, and from Linux 6.12 on the
// deadline server for fair tasks, /sys/kernel/debug/sched/fair_server), nothing if that was turned off.

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "attach/process.h"
#include "system/calls.h"

namespace luaspy {

// A thread of luaspy that must not starve, as it tells the watchdog.
class Ward {
 public:
  // ---- By the thread itself.
  void begin();  // from now on, the watchdog looks after it
  void end() { tid_ = 0; }
  // It wants to be on a CPU from then on, and tells when it wants to rest again.
  void expect(system::Clock::time_point due) { due_ns_ = system::to_ns(due.time_since_epoch()); }
  void pause() { due_ns_ = std::numeric_limits<std::int64_t>::max(); }
  // It runs on this CPU, or on a few, of its own will. The watchdog takes that back if it starves there.
  void stays() { stays_ = true; }
  bool stays_still() const { return stays_; }
  // The watchdog has made it an ordinary thread since begin().
  bool was_lowered() const { return lowered_; }

  // ---- By any thread.
  pid_t tid() const { return tid_; }
  bool has_starved() const { return starved_ns_ != 0; }

 private:
  friend class Watchdog;
  std::atomic<pid_t> tid_ = 0;  // 0: nobody
  std::atomic<std::int64_t> due_ns_ = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> starved_ns_ = 0;  // when it was last seen to starve; 0: never
  std::atomic<bool> stays_ = false, lowered_ = false;
};

// What a thread is like that wants to run and got no CPU between two looks.
struct Starving {
  bool stays = false;      // Ward::stays()
  bool real_time = false;  // of a priority that is not sufficient
  bool ends = false;       // the recording should have ended
  int looks = 0;           // in a row at which it starved
};
enum class Remedy {
  none,
  move,   // onto any CPU that luaspy may use
  raise,  // as high as luaspy may, and off the CPU where it stays: what runs there may be as high
  lower,  // an ordinary thread gets what the kernel leaves to these; a real-time thread of low priority does not
};
// `may_raise`: luaspy has the right, and nothing of the target precedes what it may have.
Remedy remedy_for(const Starving& thread, bool may_raise);

// Whether it wants to be on a CPU since `due_ns` (Ward::expect()), for longer than a thread may have to wait on a busy
// machine. `ends`: the recording should have ended; then it may wait less.
bool is_late(std::int64_t now_ns, std::int64_t due_ns, bool ends);
// Of a thread that is late, look by look: whether it got no CPU since the look before. If it could have run
// (state R), it starves.
class CpuProgress {
 public:
  // A thread that runs is given CPU time at least at each of the kernel's ticks, which are 10 ms apart at most.
  bool stands_still(const Thread::Schedule& now);
  // It is not late: the next look has none before it.
  void forget() { before_.reset(); }

 private:
  std::optional<Thread::Schedule> before_;
};

class Watchdog {
 public:
  // How often it looks. A thread that starves is helped after three looks at most.
  static constexpr std::chrono::milliseconds often{25};

  // `wards`: how many. The first is for the main thread, which is to call this.
  // `cpus`: those that luaspy may use.
  Watchdog(std::size_t wards, std::vector<int> cpus);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  Ward& ward(std::size_t index) { return wards_[index]; }
  Ward& main() { return wards_[0]; }

  // When the recording has to end; end_at(now) if it does now, for another reason. A signal that asks luaspy
  // to end is noticed anyway.
  void end_at(system::Clock::time_point time) { ends_ns_ = system::to_ns(time.time_since_epoch()); }
  // The highest real-time priority that threads of luaspy may have; 0: none.
  int highest_priority() const { return highest_priority_; }
  // Whether a thread of the target precedes all that luaspy may be, and luaspy has no other CPU: then the
  // watchdog is an ordinary thread, which the kernel leaves some time, and raises nobody.
  void be_ordinary(bool ordinary);
  // The main thread is about to write what was recorded. If it has starved just before, it will again: it is
  // raised for `lent`, of which a signal handler reminds it (system::at_each_alarm()).
  void help_main_to_end();
  static constexpr std::chrono::milliseconds lent{300};

 private:
  struct Seen {  // of a ward, by the watchdog's thread only
    pid_t tid = 0;
    std::unique_ptr<Thread> thread;
    CpuProgress progress;
    int looks = 0;
  };

  static void* run(void* self);
  void look();
  bool starves(Ward& ward, Seen& seen, std::int64_t now, bool ends) const;
  void help(std::size_t index, Remedy remedy);

  std::vector<Ward> wards_;
  std::vector<Seen> seen_;
  const std::vector<int> cpus_;
  pthread_t thread_{};
  bool exists_ = false;
  std::atomic<bool> over_ = false, has_ended_ = false;
  std::atomic<std::int64_t> ends_ns_ = std::numeric_limits<std::int64_t>::max();
  std::atomic<int> highest_priority_ = 0;
  std::atomic<bool> ordinary_ = false;
};

}  // namespace luaspy
