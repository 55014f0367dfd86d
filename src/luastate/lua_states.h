#pragma once
// The states of a Lua: is this memory one of them, and which global_State does it belong to?

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/address_range.h"
#include "base/memory.h"
#include "luastate/state_fields.h"

namespace luaspy {

class Lua;

// The implementations.
enum class LuaKind : std::uint8_t { puc, luajit };
inline constexpr std::size_t lua_kinds = 2;

class LuaStates {
 public:
  // "Lua 5.4.3-5.4.9"; "LuaJIT, 64-bit references".
  virtual std::string name() const = 0;
  LuaKind kind() const { return kind_; }
  const StateFields& state() const { return state_; }

  // Why the memory at `L` is not a lua_State of this Lua, in a few words; nullptr: it is one.
  virtual const char* misfit(const Memory& memory, Address L) const = 0;
  // The Lua of the state at `L`, whose first state_head_size bytes are `head`; nullptr if it is not
  // this one. LuaJIT: has the offsets that were found in the global_State.
  virtual const Lua* recognise(const Memory& memory, Address L, std::span<const std::byte> head) const = 0;
  // The same, if `L` is the main thread of `G`.
  virtual const Lua* recognise_main(const Memory& memory, Address L, Address G) const = 0;
  // A closed global_State may look valid until its memory is used again. Is this one open? `L`: its
  // main thread.
  virtual bool is_open(const Memory& memory, Address L, Address G) const = 0;
  // Is `L` calling something, with no protected call below? It may run without an anchor then.
  virtual bool is_unprotected(const Memory& memory, Address L) const = 0;
  virtual bool is_thread_of(const Memory& memory, Address L, Address G) const = 0;
  virtual Address main_thread(const Memory& memory, Address G) const = 0;  // 0: cannot be read
  // Of the state at `L`: where the innermost entry into Lua is on the C stack (StateFields); 0: there is none.
  Address anchor(const Memory& memory, Address L) const {
    return memory.get<Address>(L + state_.anchor).value_or(0) & ~state_.anchor_flags;
  }
  // Where it has fields that differ from release to release, as found in the live process; no_field: not found.
  using FoundField = std::pair<std::string_view, Offset>;
  virtual std::vector<FoundField> found_fields() const { return {}; }
  // A number of the fields of `G` that stay the same as long as it is open: another Lua that is made at its
  // place mostly has others (its userdata of lua_Alloc, its seed). lua_setallocf changes it, too. 0: not readable.
  std::uint64_t identity(const Memory& memory, Address G) const;
  // The slot of the registry.
  Address registry_slot(Address G) const { return G + registry_; }

 protected:
  LuaStates(LuaKind kind, const StateFields& state, Offset registry)
      : state_(state), kind_(kind), registry_(registry) {}
  ~LuaStates() = default;

  // The fields for identity(); at most most_identity bytes.
  virtual std::array<AddressRange, 3> identity_fields(Address G) const = 0;
  static constexpr std::size_t most_identity = 128;

 private:
  StateFields state_;
  LuaKind kind_;
  Offset registry_;
};

}  // namespace luaspy
