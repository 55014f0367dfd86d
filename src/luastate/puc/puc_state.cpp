// How a lua_State of PUC is recognised, and its global_State.

#include <array>

#include "luastate/puc/puc_lua.h"

namespace luaspy {

// Checks whether a layout fits a state: the state's main thread, read with this layout, must be a thread
// of the same global state; and its stack and its CallInfo chain must be where the layout says
// (lstate.h): base_ci ends the chain, and its function is the bottom of the stack. Any other layout of
// the same series finds wrong fields there. Returns what does not fit, as a text (why_not.h);
// nullptr: it fits.
const char* PucLua::misfit(const Memory& memory, Address L, std::span<const std::byte> bytes) const {
  const Layout& layout = layout_;
  const Address G = load<Address>(bytes, layout.L_G);
  if (!plausible_pointer(G) || load<std::uint8_t>(bytes, layout.L_tt) != layout.tag_thread)
    return "its l_G is not an address";
  std::optional<Address> main = G + layout.G_mainthread;
  if (!layout.mainthread_embedded) main = memory.get<Address>(*main);
  if (!main || !plausible_pointer(*main)) return "l_G->mainthread is not an address";
  for (const Address state : {*main, L}) {
    std::array<std::byte, 256> fields;
    const auto used = std::span(fields).first(layout.L_size);
    if (!memory.read(state, used)) return "it, or its main thread, cannot be read";
    if (load<std::uint8_t>(used, layout.L_tt) != layout.tag_thread || load<Address>(used, layout.L_G) != G)
      return "its main thread is not a thread of the same global_State";
    const Address stack = load<Address>(used, layout.L_stack), last = load<Address>(used, layout.L_stack_last),
                  ci = load<Address>(used, layout.L_ci);
    if (!plausible_pointer(stack) || !plausible_pointer(last)) return "stack or stack_last is not an address";
    if (!plausible_pointer(ci) || load<std::uint8_t>(used, layout.L_status) > 6)
      return "ci is not an address, or status is not valid";
    Address base_ci = state + layout.L_base_ci;
    if (layout.ci_previous == no_field) base_ci = load<Address>(used, layout.L_base_ci);
    if (!plausible_pointer(base_ci)) return "base_ci is not an address";
    // While luaD_reallocstack moves the stack, these are offsets, or a mixture of old and new
    // values.
    const bool still = last > stack && last - stack <= (Address{1} << 30) && (last - stack) % layout.value_size == 0 &&
                       memory.get<Address>(base_ci + layout.ci_func) == stack;
    if (layout.ci_previous == no_field) {
      if (!still || ci < base_ci || (ci - base_ci) % layout.ci_size != 0)
        return "the function of base_ci is not the bottom of the stack, or ci is not in the array of base_ci";
      continue;
    }
    if (memory.get<Address>(base_ci + layout.ci_previous) != Address{0}) return "base_ci is not the first CallInfo";
    if (still) continue;
    // The stack is being moved. Then something was called, and its CallInfo is linked both ways.
    const Address next = memory.get<Address>(base_ci + layout.ci_next).value_or(0);
    if (!plausible_pointer(next) || memory.get<Address>(next + layout.ci_previous) != base_ci)
      return "the function of base_ci is not the bottom of the stack";
  }
  return nullptr;
}

const char* PucLua::misfit(const Memory& memory, Address L) const {
  std::array<std::byte, state_head_size> head;
  if (!memory.read(L, head)) return "it cannot be read";
  if (load<std::uint8_t>(head, layout_.L_tt) != layout_.tag_thread) return "it does not have the type of a thread";
  return misfit(memory, L, head);
}

const Lua* PucLua::recognise(const Memory& memory, Address L, std::span<const std::byte> head) const {
  return misfit(memory, L, head) == nullptr ? this : nullptr;
}

const Lua* PucLua::recognise_main(const Memory& memory, Address L, Address G) const {
  if (main_thread(memory, G) != L) return nullptr;
  std::array<std::byte, state_head_size> head;
  return memory.read(L, head) ? recognise(memory, L, head) : nullptr;
}

// lua_close frees the registry's table before the global_State, whose contents may remain.
bool PucLua::is_open(const Memory& memory, Address L, Address G) const {
  constexpr std::uint8_t table = 5, collectable = 64;  // LUA_TTABLE (lua.h); BIT_ISCOLLECTABLE (lobject.h), from 5.2 on
  std::array<std::byte, 32> bytes;
  const auto value = std::span(bytes).first(layout_.value_size);
  if (!memory.read(registry_slot(G), value)) return false;
  const Address object = load<Address>(value, 0);
  if ((load<std::uint8_t>(value, layout_.value_tt) & ~collectable) != table || !plausible_pointer(object)) return false;
  return memory.get<std::uint8_t>(object + layout_.L_tt) == table && memory.get<Address>(L + layout_.L_G) == G;
}

// A state that waits to be resumed has a status (ldo.c, lua_yield), and so does one that an error
// has ended. One that is not started or has returned is at base_ci.
bool PucLua::is_unprotected(const Memory& memory, Address L) const {
  const std::optional<std::uint8_t> status = memory.get<std::uint8_t>(L + layout_.L_status);
  const std::optional<Address> ci = memory.get<Address>(L + layout_.L_ci),
                               errorJmp = memory.get<Address>(L + layout_.L_errorJmp);
  const Address base_ci = first_ci(memory, L);
  return status == std::uint8_t{0} && errorJmp == Address{0} && ci && base_ci != 0 && *ci != base_ci;
}

bool PucLua::is_thread_of(const Memory& memory, Address L, Address G) const {
  return memory.get<Address>(L + layout_.L_G) == G;
}

Address PucLua::main_thread(const Memory& memory, Address G) const {
  if (layout_.mainthread_embedded) return G + layout_.G_mainthread;
  return memory.get<Address>(G + layout_.G_mainthread).value_or(0);
}

}  // namespace luaspy
