#pragma once
// A ring buffer of what a CPU sampler has found: one thread adds, another one removes, neither waits.

#include <array>
#include <atomic>
#include <memory>

#include "sampling/tracked_thread.h"

namespace luaspy {

// What a CPU sampler has found out about a thread at a tick, unless it only has to be counted.
struct TickResult {
  explicit TickResult(const Memory& target) : look(target) {}
  std::shared_ptr<TrackedThread> thread;
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

class ResultRing {
 public:
  static constexpr std::size_t size = 128;

  // ---- The CPU sampler's end. A place for a result about the tick that the thread has accounted for last: a loss
  // without a cause until it is filled. nullptr: the ring is full. What is not put is overwritten by the next.
  TickResult* open(const std::shared_ptr<TrackedThread>& thread);
  void put() { put_.store(put_ + 1, std::memory_order_release); }

  // ---- The main thread's end. nullptr: it is empty.
  TickResult* front() {
    return taken_ == put_.load(std::memory_order_acquire) ? nullptr : places_[taken_ % size].get();
  }
  void pop() { taken_.store(taken_ + 1, std::memory_order_release); }

 private:
  std::array<std::unique_ptr<TickResult>, size> places_;  // made when needed, and anew for another program
  std::atomic<std::size_t> put_ = 0, taken_ = 0;
};

}  // namespace luaspy
