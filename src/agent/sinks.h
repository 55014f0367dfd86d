#pragma once
// Several sinks that see the same samples, in their order.

#include <utility>
#include <vector>

#include "sampling/sample_sink.h"

namespace luaspy {

class Sinks : public SampleSink {
 public:
  explicit Sinks(std::vector<SampleSink*> all) : all_(std::move(all)) {}

  void begin(system::Clock::time_point start) override {
    for (SampleSink* const each : all_) each->begin(start);
  }
  void add(ThreadId thread, const Tick& tick, const Sample& sample) override {
    for (SampleSink* const each : all_) each->add(thread, tick, sample);
  }
  void add_idle(ThreadId thread, std::int64_t count) override {
    for (SampleSink* const each : all_) each->add_idle(thread, count);
  }
  void add_waiting(ThreadId thread, std::int64_t count) override {
    for (SampleSink* const each : all_) each->add_waiting(thread, count);
  }
  void add_loss(Loss loss, std::int64_t count) override {
    for (SampleSink* const each : all_) each->add_loss(loss, count);
  }
  void end(int pid, const Tick& tick) override {
    for (SampleSink* const each : all_) each->end(pid, tick);
  }
  void tables_renewed() override {
    for (SampleSink* const each : all_) each->tables_renewed();
  }
  void look(const LoopCounts& counts) override {
    for (SampleSink* const each : all_) each->look(counts);
  }

 private:
  std::vector<SampleSink*> all_;
};

}  // namespace luaspy
