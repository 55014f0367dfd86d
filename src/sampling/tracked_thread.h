#pragma once
// What CPU samplers know about each thread of the target from tick to tick, and what they hand over to
// the main thread.

#include <atomic>
#include <memory>
#include <mutex>

#include "attach/switch_log.h"
#include "attach/urgency.h"
#include "sampling/back_off.h"
#include "sampling/log_choice.h"
#include "sampling/session.h"
#include "sampling/stop_request.h"
#include "system/calls.h"

namespace luaspy {

// A lock that is only ever tried, for threads that must not wait.
class Claim {
 public:
  bool try_take() { return !taken_.test_and_set(std::memory_order_acquire); }
  void give_back() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

// One thread of the target, from tick to tick.
struct TrackedThread {
  TrackedThread(Session& of, std::shared_ptr<Thread> watched, system::Clock::time_point now)
      : session(of),
        program(of.program()),
        thread(std::move(watched)),
        at(now),
        cpu(thread->cpu()),
        urgency(urgency_of(thread->tid())) {}

  Session& session;
  const std::uint64_t program;  // ThreadKey::program; a later session may have the place of this one in memory
  const std::shared_ptr<Thread> thread;
  std::unique_ptr<SwitchLog> switches;  // null: luaspy may not have it, or it is too costly now
  Claim claim;                          // its holder may look at the thread, and change the fields that follow
  std::int64_t tick = -1;           // the last tick that was accounted for; -1: none, its ticks begin with the next one
  system::Clock::time_point at;     // when that tick was
  std::int64_t skipped_seen = 0;    // CpuSamplers::skipped() at that time
  std::atomic<bool> slept = false;  // at that tick
  bool moved = false;               // it has moved to another CPU since then
  StopRequest request;              // while it is asked to stop, only that CPU sampler may look at it
  Thread::Schedule schedule;        // as read at that tick, or at the last tick before it that read it
  system::Clock::time_point schedule_at;  // when it was read
  std::atomic<int> cpu;                   // where it was last seen; the CPU sampler of that CPU is responsible for it
  std::atomic<bool> held = false;         // it is a real-time thread, and may run on one CPU only
  std::atomic<Urgency> urgency;           // its scheduling policy, as asked last
  std::atomic<std::int64_t> idle = 0, waited = 0;  // ticks at which it slept, or waited for a CPU, that the main thread
                                                   // has not counted yet
  // The same for ticks that were lost.
  std::atomic<std::int64_t> late = 0, elsewhere = 0, not_stopped = 0, in_vain = 0;
  BackOff looks;  // at it while it executed

  // Used by the main thread only.
  LogChoice log_choice;
  std::uint64_t runs = 0;  // how often it was given a CPU, by its log or by its Schedule, when log_choice was asked
                           // last

  // From the last finished look; CPU samplers use it for the next one.
  std::mutex prediction_lock;
  std::shared_ptr<const StackReader::Prediction> prediction = std::make_shared<StackReader::Prediction>();
};

// What a CPU sampler has found out about a thread at a tick, unless it only has to be counted.
struct TickResult {
  explicit TickResult(const Memory& target) : look(target) {}
  std::shared_ptr<TrackedThread> watch;
  std::int64_t number = 0;  // the tick's number
  system::Clock::time_point at;
  std::int64_t passed_ns = 0;  // since the thread's last tick
  enum class Kind { look, asleep_again, waiting, loss } kind = Kind::loss;
  Loss loss = Loss::none;
  std::int64_t stopped_ns = 0;
  int cpu = -1;         // TrackedThread::cpu then
  bool remote = false;  // stopped from another CPU
  Sampler::Look look;
};

}  // namespace luaspy
