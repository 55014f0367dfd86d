#include "luastate/running.h"

#include <algorithm>

namespace luaspy {

std::vector<ActiveState> Walked::active() const {
  std::vector<ActiveState> active;
  for (const RunningState& state : on_thread()) active.push_back(state.activation);
  return active;
}

void Walked::drop_strangers(Address sp, Address end, bool ends_there) {
  for (std::size_t i = running; i-- > 0;) {
    const ActiveState& state = states[i].activation;
    const bool lies_among_frames = state.L >= sp && state.L < end;
    const bool is_beyond = ends_there && states[i].anchored && state.anchor >= end;
    if (!lies_among_frames && !is_beyond) continue;
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
      if (!call.is_lua()) entries.push_back(call.entry);
    }
  }
  return entries;
}

}  // namespace luaspy
