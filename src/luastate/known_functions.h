#pragma once
// Functions that were called in looks before: closure → what it was made of. A stop need not read them again. What is read after the stop
// may have been collected meanwhile, and another function be at its address: only what is as it was before is believed then.

#include <vector>

#include "luastate/walk.h"

namespace luaspy {

class KnownFunctions {
 public:
  // Asked for each call in the stop.
  bool has(Address closure) const { return closures_[slot_of(closure)] == closure; }

  // Are all of these calls' functions what they were when they became known? If any is not, all are forgotten.
  bool confirm(const LuaWalk& walk);
  void add(const LuaWalk& walk);
  void clear() { *this = KnownFunctions(); }

 private:
  struct What {
    Address proto = 0, entry = 0;
    std::uint64_t mark = 0;
    bool operator==(const What&) const = default;
  };
  static What what(const LuaCall& call) { return {call.proto, call.entry, call.mark}; }
  std::size_t slot_of(Address closure) const;   // where it is, or would be
  void grow();

  // A table by hash, in two: what the stop needs is kept close together.
  std::vector<Address> closures_ = std::vector<Address>(64);
  std::vector<What> whats_ = std::vector<What>(64);
  std::size_t count_ = 0;
};

}  // namespace luaspy
