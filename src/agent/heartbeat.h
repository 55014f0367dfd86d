#pragma once
// Says to the service manager that the agent still samples, if it wants to know that.

#include "sampling/sample_sink.h"
#include "system/service_manager.h"

namespace luaspy {

class Heartbeat : public SampleSink {
 public:
  void add(ThreadId, const Tick&, const Sample&) override {}
  void add_idle(ThreadId, std::int64_t) override {}
  void add_waiting(ThreadId, std::int64_t) override {}
  void add_loss(Loss, std::int64_t) override {}
  void look(const LoopCounts&) override {
    constexpr int times = 3;  // of what it waits for: one may come late
    const system::Clock::time_point now = system::Clock::now();
    if (!time_ || now - last_ < *time_ / times) return;
    last_ = now;
    system::notify_service_manager("WATCHDOG=1");
  }

 private:
  const std::optional<system::Clock::duration> time_ = system::watchdog_time();
  system::Clock::time_point last_{};
};

}  // namespace luaspy
