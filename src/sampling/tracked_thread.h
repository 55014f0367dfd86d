#pragma once
// What CPU samplers know about each thread of the target from tick to tick.

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "attach/switch_log.h"
#include "attach/urgency.h"
#include "sampling/back_off.h"
#include "sampling/log_choice.h"
#include "sampling/sampled_process.h"
#include "sampling/stop_request.h"
#include "sampling/tick_account.h"
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

// What the last finished look at a thread has shown, for the next one.
class LastPrediction {
 public:
  using Prediction = std::shared_ptr<const StackReader::Prediction>;
  Prediction get() {
    const std::lock_guard lock(lock_);
    return last_;
  }
  // Does not wait: an empty one if it is just being changed.
  Prediction get_soon() {
    static const Prediction none = std::make_shared<StackReader::Prediction>();
    if (!lock_.try_lock()) return none;
    const std::lock_guard held(lock_, std::adopt_lock);
    return last_;
  }
  void set(Prediction next) {
    const std::lock_guard lock(lock_);
    last_ = std::move(next);
  }

 private:
  std::mutex lock_;
  Prediction last_ = std::make_shared<StackReader::Prediction>();
};

// One thread of the target, from tick to tick.
struct TrackedThread {
  TrackedThread(SampledProcess& of, std::shared_ptr<Thread> tracked, system::Clock::time_point now)
      : process(of),
        program(of.program()),
        thread(std::move(tracked)),
        ticks(now),
        cpu(thread->cpu()),
        urgency(urgency_of(thread->tid())) {}

  SampledProcess& process;
  const std::uint64_t program;  // ThreadKey::program; a later process may have the place of this one in memory
  const std::shared_ptr<Thread> thread;
  std::unique_ptr<SwitchLog> switches;  // null: luaspy may not have it, or it is too costly now
  Claim claim;                          // its holder may look at the thread, and change the fields that follow
  TickAccount ticks;
  StopRequest request;             // while it is asked to stop, only that CPU sampler may look at it
  std::atomic<int> cpu;            // where it was last seen; the CPU sampler of that CPU is responsible for it
  std::atomic<bool> held = false;  // it is a real-time thread, and may run on one CPU only
  std::atomic<Urgency> urgency;    // its scheduling policy, as asked last
  UnseenTicks unseen;
  BackOff looks;  // at it while it executed

  // Used by the main thread only.
  LogChoice log_choice;
  std::uint64_t runs = 0;  // how often it was given a CPU, by its log or by its Schedule, when log_choice was asked
                           // last

  LastPrediction predicted;
};

}  // namespace luaspy
