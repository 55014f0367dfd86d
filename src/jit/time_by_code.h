#pragma once
// Where the time of a program goes, by what the VM does, by line and by trace: samples of threads that execute,
// counted.

#include <array>
#include <map>
#include <optional>
#include <unordered_map>

#include "events/event_tables.h"
#include "sampling/sample_sink.h"

namespace luaspy {

using TimeByState = std::array<std::int64_t, vm_state_count>;  // ns, by VmState

struct CodeTime {
  TimeByState all{};
  std::int64_t samples = 0, lost = 0;      // of threads that executed; ticks without a sample
  std::map<FrameId, TimeByState> lines;    // by the innermost Lua frame, which has a line
  std::map<FrameId, std::int64_t> traces;  // by the frame of a trace (MergeOptions::traces)

  std::int64_t of(VmState state) const { return all[static_cast<std::size_t>(state)]; }
  std::int64_t with_lua() const;
};

class CodeTimeSink : public SampleSink {
 public:
  explicit CodeTimeSink(const StackTable& stacks) : stacks_(stacks) {}

  void add(ThreadId thread, const Tick& tick, const Sample& sample) override;
  void add_idle(ThreadId, std::int64_t) override {}
  void add_waiting(ThreadId, std::int64_t) override {}
  void add_loss(Loss, std::int64_t count) override { time_.lost += count; }

  const CodeTime& time() const { return time_; }

 private:
  struct Innermost {
    std::optional<FrameId> line, trace;
  };
  const Innermost& innermost(StackId stack);

  const StackTable& stacks_;
  CodeTime time_;
  std::unordered_map<std::uint32_t, Innermost> known_;  // by stack
};

}  // namespace luaspy
