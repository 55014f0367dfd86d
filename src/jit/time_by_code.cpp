#include "jit/time_by_code.h"

#include <numeric>

namespace luaspy {

std::int64_t CodeTime::with_lua() const {
  return std::accumulate(all.begin(), all.end(), std::int64_t{0}) - of(VmState::none);
}

const CodeTimeSink::Innermost& CodeTimeSink::innermost(StackId stack) {
  const auto [known, is_new] = known_.try_emplace(static_cast<std::uint32_t>(stack));
  if (!is_new) return known->second;
  Innermost& found = known->second;
  while (stack != empty_stack && !found.line) {
    const StackTable::Node& node = stacks_.nodes()[stack];
    const Frame& frame = stacks_.frames()[node.frame];
    if (frame.kind == Frame::Kind::lua) found.line = node.frame;
    else if (!found.trace && frame.kind == Frame::Kind::marker && frame.name.starts_with("[trace "))
      found.trace = node.frame;
    stack = node.outer;
  }
  return found;
}

void CodeTimeSink::add(ThreadId, const Tick& tick, const Sample& sample) {
  if (sample.loss != Loss::none) {
    ++time_.lost;
    return;
  }
  if (sample.state != Attributes::State::running) return;
  ++time_.samples;
  const auto state = static_cast<std::size_t>(sample.vm_state);
  time_.all[state] += tick.weight;
  if (sample.vm_state == VmState::none) return;
  const Innermost& found = innermost(sample.stack);
  if (found.line) time_.lines[*found.line][state] += tick.weight;
  if (found.trace && sample.vm_state == VmState::machine_code) time_.traces[*found.trace] += tick.weight;
}

}  // namespace luaspy
