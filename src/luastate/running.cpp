#include "luastate/running.h"

#include <algorithm>

namespace luaspy {

std::vector<Activation> Walked::active() const {
  std::vector<Activation> active;
  for (const RunningState& state : on_thread()) active.push_back(state.activation);
  return active;
}

void Walked::drop_from(Address end) {
  const auto lies_beyond = [&](const auto& state) { return state.anchored && state.activation.anchor >= end; };
  // If that is all there is, the end is wrong rather than the states.
  if (std::all_of(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(running), lies_beyond)) return;
  for (std::size_t i = running; i-- > 0;) {
    if (!lies_beyond(states[i])) continue;
    std::erase_if(parts, [&](const Part& part) { return part.state == i; });
    for (Part& part : parts) part.state -= part.state > i ? 1 : 0;
    const auto dropped = states.begin() + static_cast<std::ptrdiff_t>(i);
    std::rotate(dropped, dropped + 1, states.end());
    --running;
    --walked;
  }
}

std::vector<Address> Walked::vm_frames() const {
  std::vector<Address> all;
  for (const RunningState& state : on_thread()) {
    const std::span<const Address> frames = state.notes->vm_frames();
    all.insert(all.end(), frames.begin(), frames.end());
  }
  return all;
}

std::vector<Address> Walked::c_entries() const {
  std::vector<Address> entries;
  for (const RunningState& state : on_thread()) {
    for (const LuaCall& call : state.walk.calls) {
      if (!call.is_lua) entries.push_back(call.entry);
    }
  }
  return entries;
}

}  // namespace luaspy
