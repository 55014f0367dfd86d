#pragma once
// Functions that were called in earlier looks: maps a closure to its properties, so that a stop
// need not read them again. When they are read after the stop, the function may have been collected
// and another one may be at its address, so they are accepted only if nothing has changed.

#include <array>
#include <atomic>
#include <vector>

#include "luastate/walk.h"

namespace luaspy {

class KnownFunctions {
 public:
  // Any thread may ask this, for each call in the stop. A concurrent change costs at most a read,
  // or is detected by confirm().
  bool has(Address closure) const { return closures_[slot_of(closure)].load(std::memory_order_relaxed) == closure; }

  // Do the functions of all these calls have the same properties as when they became known? If any
  // differs, all are forgotten.
  bool confirm(const LuaWalk& walk);
  void add(const LuaWalk& walk);
  void clear();

 private:
  // A program may make closures without end: when half of the places are taken, all are forgotten.
  static constexpr std::size_t places = 1 << 12;
  struct What {
    Address proto = 0, entry = 0;
    std::uint64_t mark = 0;
    bool operator==(const What&) const = default;
  };
  static What what(const LuaCall& call) { return {call.proto, call.entry, call.mark}; }
  std::size_t slot_of(Address closure) const;  // where it is, or would be

  // A hash table in two parts: the part that the stop needs stays compact.
  std::array<std::atomic<Address>, places> closures_{};
  std::vector<What> whats_ = std::vector<What>(places);
  std::size_t count_ = 0;
};

}  // namespace luaspy
