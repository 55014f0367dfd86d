#pragma once
// What a lua_State and its stack are, as far as every Lua has it.

#include <cstdint>
#include <span>

#include "base/memory.h"
#include "luastate/offset.h"

namespace luaspy {

// The fields with which a running lua_State is found. A running state has an anchor on the C stack
// (locate.h): the errorJmp of PUC, the cframe of LuaJIT.
struct StateFields {
  Offset tt = 0, marked = 0, G = 0;  // the object's type and mark, the reference to its global_State
  std::uint8_t tag = 0;              // what `tt` is of a lua_State
  bool short_reference = false;      // references have 32 bits
  Offset anchor = 0;
  Address anchor_flags = 0;      // bits of the anchor that are not part of the address
  Offset anchor_previous = 0;    // in the object that it points at: the next one outwards
  bool always_anchored = false;  // false: only in a protected call
  // A main thread and its global_State are allocated together: how far above the main thread the
  // global_State may be, modulo 2^64.
  Address nearest_G = 0, farthest_G = 0;

  // The global_State that the object refers to whose first bytes these are.
  Address global_of(std::span<const std::byte> bytes) const {
    return short_reference ? load<std::uint32_t>(bytes, G) : load<Address>(bytes, G);
  }
  bool may_be_main(Address L, Address its_G) const { return its_G - L - nearest_G <= farthest_G - nearest_G; }
};
// Bytes of a lua_State that show whether it is one: up to the fields above, and ci, in every Lua.
inline constexpr std::size_t state_head_size = 112;

// What lua_status, lua_getstack and lua_gettop would return.
struct Situation {
  std::uint8_t status = 0;
  bool has_frames = false;
  bool has_values = false;
  Address first = 0;  // the slot of the function that it began, or will begin, with
  Address top = 0;    // the first free slot
};
inline constexpr std::uint8_t status_ok = 0, status_yield = 1;  // LUA_OK, LUA_YIELD (lua.h)

// Neighbouring slots of a Lua stack.
struct Slots {
  Address first = 0;
  std::uint64_t count = 0;
};
inline constexpr std::uint64_t most_stack_slots = 1'100'000;  // LUAI_MAXSTACK (luaconf.h), with its error room

}  // namespace luaspy
