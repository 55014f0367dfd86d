// Where the variables of a call are. variables.h has a drawing.

#include "luastate/puc/puc_lua.h"

namespace luaspy {

// OP_VARARGPREP of 5.4 and later (ltm.c, luaT_adjustvarargs) moves them.
bool PucLua::prepares_parameters(const LuaCall& call) const {
  return call.is_vararg() && layout_.ci_nextraargs != no_field;
}

Address PucLua::first_local(const Memory& memory, const LuaCall& call) const {
  const std::uint64_t slot = slot_size();
  if (layout_.ci_base == no_field) return call.func + slot;
  const Address base = memory.get<Address>(call.ci + layout_.ci_base).value_or(0);
  return base > call.func && (base - call.func) % slot == 0 && base - call.func <= most_stack_slots * slot ? base : 0;
}

Slots PucLua::varargs(const Memory& memory, const LuaCall& call, std::uint64_t parameters) const {
  const std::uint64_t slot = slot_size();
  if (layout_.ci_nextraargs == no_field) {
    const std::uint64_t below = (first_local(memory, call) - call.func) / slot - 1;
    return below > parameters ? Slots{call.func + slot * (1 + parameters), below - parameters} : Slots{};
  }
  const std::uint8_t kind = memory.get<std::uint8_t>(call.proto + layout_.p_is_vararg).value_or(0);
  const std::int32_t count = memory.get<std::int32_t>(call.ci + layout_.ci_nextraargs).value_or(0);
  if ((kind & layout_.has_varargs) == 0 || count <= 0 || static_cast<std::uint64_t>(count) > most_stack_slots)
    return {};
  return {call.func - slot * static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(count)};
}

// The slot where the function was called. If the function was moved, this is below its varargs.
Address PucLua::call_place(const Memory& memory, const LuaCall& call) const {
  if (!call.is_vararg() || layout_.ci_nextraargs == no_field || call.index_of(call.saved_pc) == 0) return call.func;
  const std::uint64_t parameters = memory.get<std::uint8_t>(call.proto + layout_.p_numparams).value_or(0);
  const std::uint8_t kind = memory.get<std::uint8_t>(call.proto + layout_.p_is_vararg).value_or(0);
  if ((kind & layout_.has_varargs) == 0) return call.func;
  return call.func - slot_size() * (1 + parameters + varargs(memory, call, parameters).count);
}

// The slot of the function of a call that has yielded is lost in 5.2 and 5.3 (ldo.c, lua_yieldk).
Address PucLua::first_argument(const Memory& memory, const LuaCall& caller, int called_register, const LuaCall&) const {
  const Address base = first_local(memory, caller);
  return base != 0 ? base + static_cast<std::uint64_t>(called_register + 1) * slot_size() : 0;
}

// ldebug.c, luaG_findlocal: a C function's part of the stack ends at L->top, or where the next
// function begins.
Slots PucLua::c_slots(const Memory& memory, Address L, const LuaWalk& walk, std::size_t index) const {
  const std::uint64_t slot = slot_size();
  const Address first = walk.calls[index].func + slot;
  const Address end = index == 0 ? memory.get<Address>(L + layout_.L_top).value_or(0)
                                 : call_place(memory, walk.calls[index - 1]);
  if (end <= first || (end - first) % slot != 0 || (end - first) / slot > most_stack_slots) return {};
  return {first, (end - first) / slot};
}

// lobject.h, CClosure: the function, and then the values.
Address PucLua::c_upvalue_slot(Address closure, std::size_t index) const {
  return closure + layout_.cclosure_upvalue + slot_size() * index;
}

Address PucLua::upvalue_slot(const Memory& memory, Address closure, std::size_t index) const {
  const Address upvalue = memory.get<Address>(closure + layout_.closure_upvals + 8 * index).value_or(0);
  return plausible_pointer(upvalue) ? memory.get<Address>(upvalue + layout_.upval_v).value_or(0) : 0;
}

}  // namespace luaspy
