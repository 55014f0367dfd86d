#include "luastate/running.h"

namespace luaspy {

std::vector<Activation> Walked::active() const {
  std::vector<Activation> active;
  for (const RunningState& state : on_thread()) active.push_back(state.activation);
  return active;
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
