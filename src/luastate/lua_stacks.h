#pragma once
// The stack of a lua_State: what it calls, and where the variables of a call are.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/memory.h"
#include "luastate/state_fields.h"
#include "luastate/walk.h"

namespace luaspy {

class LuaStacks {
 public:
  virtual bool situation(const Memory& memory, Address G, Address L, Situation& now) const = 0;
  virtual bool has_hook(const Memory& memory, Address G, Address L) const = 0;
  // The calls of a state that no thread is in. `walk` is reused.
  virtual void walk_waiting(const Memory& memory, Address L, const WalkLimits& limits, LuaWalk& walk) const = 0;
  // The bounds of its Lua stack.
  virtual std::pair<Address, Address> stack_of(const Memory& memory, Address L) const = 0;
  // The function in a slot of the Lua stack, called or not. False if there is none.
  virtual bool function_in_slot(const Memory& memory, Address L, Address slot, LuaCall& call) const = 0;

  // ---- The variables of a call (variables.h)
  // At the first instruction of this call, may its parameters be at another place, or not exist
  // yet?
  virtual bool prepares_parameters(const LuaCall& call) const = 0;
  virtual Address first_local(const Memory& memory, const LuaCall& call) const = 0;  // 0: not known
  virtual Slots varargs(const Memory& memory, const LuaCall& call, std::uint64_t parameters) const = 0;
  // Where the first argument of `call` is, which an instruction of `caller` called in this register;
  // 0: not known.
  virtual Address first_argument(const Memory& memory, const LuaCall& caller, int called_register,
                                 const LuaCall& call) const = 0;
  // What a C function has on its part of the stack: walk.calls[index].
  virtual Slots c_slots(const Memory& memory, Address L, const LuaWalk& walk, std::size_t index) const = 0;

 protected:
  ~LuaStacks() = default;
};

}  // namespace luaspy
