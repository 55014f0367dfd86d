#pragma once
// Functions that begin on the same line of one parent. Their order in the parent says which of the
// definitions on that line is theirs, and tells those apart that have the same code.

#include <cstdint>
#include <unordered_map>

#include "base/memory.h"
#include "luastate/lua_functions.h"

namespace luaspy {

// Where a function is among those that begin on the same line of one parent.
struct Siblings {
  int parent = -1;  // the parent's definition; main_chunk; unknown: not found
  int number = 0, count = 1;
  static constexpr int main_chunk = -1, unknown = -2;
};

class Twins {
 public:
  struct Twin {
    // Prototype::identity() of it, and its number among those of the same identity: 0 for the first.
    std::uint32_t identity = 0, number = 0;
    Siblings siblings;
  };

  // Reads the functions that are defined in `parent` and remembers those that begin on one line.
  // `mark`: that of the parent's Proto when it was read (LuaFunctions::mark); if it is another one
  // afterwards, nothing is remembered. `definition`: as Siblings::parent. A parent that is read
  // again replaces what was known.
  void read_children(const LuaFunctions& lua, const Memory& memory, const Prototype& parent, std::uint64_t mark,
                     int definition);

  // What is known of the Proto at this address, if it still is the same function: another one may
  // have come to its place.
  const Twin* find(Address proto, std::uint32_t identity) const;

  void clear() { twins_.clear(); }

 private:
  std::unordered_map<Address, Twin> twins_;  // by Proto
};

}  // namespace luaspy
