#pragma once
// Functions that were called in looks before: closure → what it was made of. A stop need not read them again. What is read after the stop
// may have been collected meanwhile, and another function be at its address: only what is as it was before is believed then.

#include <unordered_map>

#include "luastate/walk.h"

namespace luaspy {

class KnownFunctions {
 public:
  bool has(Address closure) const { return known_.contains(closure); }

  // Are all of these calls' functions what they were when they became known? Those that are not are forgotten.
  bool confirm(const LuaWalk& walk) {
    bool all = true;
    for (const LuaCall& call : walk.calls) {
      const auto known = call.closure != 0 ? known_.find(call.closure) : known_.end();
      if (known == known_.end() || known->second == what(call)) continue;
      known_.erase(known);
      all = false;
    }
    return all && walk.dropped == 0 && walk.innermost_dropped == 0;
  }

  void add(const LuaWalk& walk) {
    constexpr std::size_t most = 1 << 15;
    if (known_.size() > most) known_.clear();
    for (const LuaCall& call : walk.calls) {
      if (call.closure != 0) known_.insert_or_assign(call.closure, what(call));
    }
  }
  void clear() { known_.clear(); }

 private:
  struct What {
    Address proto = 0, entry = 0;
    std::uint64_t mark = 0;
    bool operator==(const What&) const = default;
  };
  static What what(const LuaCall& call) { return {call.proto, call.entry, call.mark}; }

  std::unordered_map<Address, What> known_;
};

}  // namespace luaspy
