#pragma once
// Functions that were called in looks before: closure → what it was made of. A stop need not read
// them again. What is read after the stop may have been collected meanwhile, and another function
// be at its address: only what is as it was before is believed then.

#include <array>
#include <atomic>
#include <vector>

#include "luastate/walk.h"

namespace luaspy {

class KnownFunctions {
 public:
  // Asked for each call in the stop, by any thread: what is learned or forgotten meanwhile costs a
  // read, or is found out by confirm().
  bool has(Address closure) const { return closures_[slot_of(closure)].load(std::memory_order_relaxed) == closure; }

  // Are all of these calls' functions what they were when they became known? If any is not, all are
  // forgotten.
  bool confirm(const LuaWalk& walk);
  void add(const LuaWalk& walk);
  void clear();

 private:
  static constexpr std::size_t places = 1 << 12;  // a program may make closures without end: when half are taken, all
                                                  // are forgotten
  struct What {
    Address proto = 0, entry = 0;
    std::uint64_t mark = 0;
    bool operator==(const What&) const = default;
  };
  static What what(const LuaCall& call) { return {call.proto, call.entry, call.mark}; }
  std::size_t slot_of(Address closure) const;  // where it is, or would be

  // A table by hash, in two: what the stop needs is kept close together.
  std::array<std::atomic<Address>, places> closures_{};
  std::vector<What> whats_ = std::vector<What>(places);
  std::size_t count_ = 0;
};

}  // namespace luaspy
