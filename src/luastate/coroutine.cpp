#include "luastate/coroutine.h"

#include <array>

#include "luastate/luajit/walk_luajit.h"
#include "luastate/puc/walk_puc.h"

namespace luaspy {
namespace {

constexpr std::uint8_t status_ok = 0, status_yield = 1;  // lua.h
constexpr Address slot_size = 16, slot_size_luajit = 8;

// What lua_status, lua_getstack and lua_gettop would return.
struct Situation {
  std::uint8_t status = 0;
  bool has_frames = false;
  bool has_values = false;
  Address first = 0;  // the slot of the function that it began, or will begin, with
};

bool situation_of(const Memory& memory, const Layout& layout, Address G, Address L, Situation& now) {
  std::array<std::byte, 256> bytes;
  const auto fields = std::span(bytes).first(layout.L_size);
  if (!memory.read(L, fields) || load<std::uint8_t>(fields, layout.L_tt) != layout.tag_thread ||
      load<Address>(fields, layout.L_G) != G)
    return false;
  const Address ci = load<Address>(fields, layout.L_ci), stack = load<Address>(fields, layout.L_stack),
                top = load<Address>(fields, layout.L_top);
  if (!plausible_pointer(ci) || !plausible_pointer(stack)) return false;
  const Address base_ci = layout.ci_previous == no_field ? load<Address>(fields, layout.L_base_ci)
                                                         : L + layout.L_base_ci;
  now.status = load<std::uint8_t>(fields, layout.L_status);
  now.has_frames = ci != base_ci;
  now.first = stack + slot_size;
  now.has_values = top > now.first;
  return true;
}

bool situation_of(const Memory& memory, const LuajitLayout& layout, Address G, Address L, Situation& now) {
  std::array<std::byte, 96> bytes;
  const auto fields = std::span(bytes).first(layout.L_stacksize + 4u);
  if (!memory.read(L, fields) || !is_thread_of(memory, layout, L, G)) return false;
  const Address stack = load_ref(layout, fields, layout.L_stack), base = load<Address>(fields, layout.L_base),
                top = load<Address>(fields, layout.L_top);
  if (!plausible_pointer(stack)) return false;
  now.status = load<std::uint8_t>(fields, layout.L_status);
  now.first = stack + slot_size_luajit * (layout.gc64 ? 2 : 1);  // after the thread itself
  now.has_frames = base > now.first;
  now.has_values = top > base;
  return true;
}

CoroutineStatus status_of(const Situation& now, Active active) {
  if (active == Active::innermost) return CoroutineStatus::running;
  if (active == Active::further_out) return CoroutineStatus::normal;
  if (now.status == status_yield) return CoroutineStatus::suspended;
  if (now.status != status_ok) return CoroutineStatus::failed;
  if (now.has_frames) return CoroutineStatus::elsewhere;
  return now.has_values ? CoroutineStatus::not_started : CoroutineStatus::dead;
}

}  // namespace

std::string_view name(CoroutineStatus status) {
  switch (status) {
    case CoroutineStatus::running:
      return "running";
    case CoroutineStatus::normal:
      return "normal";
    case CoroutineStatus::elsewhere:
      return "elsewhere";
    case CoroutineStatus::suspended:
      return "suspended";
    case CoroutineStatus::not_started:
      return "not started";
    case CoroutineStatus::dead:
      return "dead";
    case CoroutineStatus::failed:
      break;
  }
  return "failed";
}

bool has_hook(const Memory& memory, const Dialect& lua, Address G, Address L) {
  constexpr std::uint8_t events = 0x0f;  // lj_obj.h, HOOK_EVENTMASK
  if (lua.puc != nullptr) return memory.get<std::uint8_t>(L + lua.puc->L_hookmask).value_or(0) != 0;
  return lua.luajit->G_hookmask != no_field &&
         (memory.get<std::uint8_t>(G + lua.luajit->G_hookmask).value_or(0) & events) != 0;
}

bool look_at_coroutine(const Memory& memory, const Dialect& lua, Address G, Address L, Active active,
                       const WalkLimits& limits, CoroutineLook& look) {
  Situation now;
  look.walk.clear();
  look.began = {};
  look.begun = false;
  if (!(lua.puc != nullptr ? situation_of(memory, *lua.puc, G, L, now) : situation_of(memory, *lua.luajit, G, L, now)))
    return false;
  look.hooked = has_hook(memory, lua, G, L);
  look.status = status_of(now, active);
  if (look.status == CoroutineStatus::dead) return true;
  if (look.status == CoroutineStatus::not_started) {
    // Its first value is the function, unless the host has put something else there.
    look.begun = lua.puc != nullptr ? read_function_at(memory, *lua.puc, L, now.first, look.began)
                                    : read_function_at(memory, *lua.luajit, L, now.first, look.began);
    return true;
  }
  if (lua.puc != nullptr) {
    walk_puc(memory, memory, *lua.puc, L, limits, look.walk);
  } else {
    const Address base = memory.get<Address>(L + lua.luajit->L_base).value_or(0);
    walk_luajit(memory, *lua.luajit, L, {}, {base, 0, {}}, limits, look.walk);
  }
  // A coroutine that waits is not being set up or torn down.
  const bool waits = active != Active::innermost;
  if (look.walk.end != LuaWalk::End::complete ||
      (waits && (look.walk.dropped != 0 || look.walk.innermost_dropped != 0)))
    return false;
  look.begun = !look.walk.calls.empty();
  if (look.begun) look.began = look.walk.calls.back();
  return true;
}

void touch_coroutine(const Memory& memory, const Dialect& lua, Address L) {
  constexpr Address most = 16 << 10;  // a coroutine with a deeper stack probably waits
  Address stack = 0, end = 0;
  if (lua.puc != nullptr) {
    stack = memory.get<Address>(L + lua.puc->L_stack).value_or(0);
    end = memory.get<Address>(L + lua.puc->L_stack_last).value_or(0);
  } else {
    stack = read_ref(memory, *lua.luajit, L + lua.luajit->L_stack).value_or(0);
    end = stack + slot_size_luajit * Address{memory.get<std::uint32_t>(L + lua.luajit->L_stacksize).value_or(0)};
  }
  if (plausible_pointer(stack) && end > stack && end - stack <= most) memory.touch(stack, end - stack);
}

}  // namespace luaspy
