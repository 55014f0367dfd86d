#include "luastate/coroutine.h"

namespace luaspy {
namespace {

CoroutineStatus status_of(const Situation& now, Active active) {
  if (active == Active::innermost) return CoroutineStatus::running;
  if (active == Active::further_out) return CoroutineStatus::normal;
  if (now.status == status_yield) return CoroutineStatus::suspended;
  if (now.status != status_ok) return CoroutineStatus::failed;
  if (now.has_frames) return CoroutineStatus::elsewhere;
  return now.has_values ? CoroutineStatus::not_started : CoroutineStatus::dead;
}

// An error ends a coroutine with its value on the top of the stack (ldo.c, lua_resume; lj_err.c).
// coroutine.resume moves it from there to whoever has resumed (lcorolib.c, auxresume); the slot above
// the top still has it. That is a valid value: the collector clears what is above the top before it
// frees what only that refers to (lgc.c, lj_gc.c: GCSatomic).
Address error_slot(const Memory& memory, const LuaValues& lua, Address top) {
  for (const Address slot : {top, top - lua.slot_size()}) {
    const std::optional<Value> value = lua.read_value(memory, slot);
    if (value && value->type == Value::Type::string) return slot;
  }
  return 0;
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

bool look_at_coroutine(const Memory& memory, const CoroutineAt& at, const WalkLimits& limits, CoroutineLook& look) {
  const auto& [lua, G, L, active] = at;
  Situation now;
  look.walk.clear();
  look.began = {};
  look.begun = false;
  look.error = 0;
  if (!lua.situation(memory, G, L, now)) return false;
  look.hooked = lua.has_hook(memory, G, L);
  look.status = status_of(now, active);
  if (look.status == CoroutineStatus::dead) return true;
  if (look.status == CoroutineStatus::failed) look.error = error_slot(memory, lua, now.top);
  if (look.status == CoroutineStatus::not_started) {
    // Its first value is the function, unless the host has put something else there.
    look.begun = lua.function_in_slot(memory, L, now.first, look.began);
    return true;
  }
  lua.walk_waiting(memory, L, limits, look.walk);
  // A coroutine that waits is not being set up or torn down.
  const bool waits = active != Active::innermost;
  if (look.walk.end != LuaWalk::End::complete ||
      (waits && (look.walk.dropped != 0 || look.walk.innermost_dropped != 0)))
    return false;
  look.begun = !look.walk.calls.empty();
  if (look.begun) look.began = look.walk.calls.back();
  return true;
}

void prefetch_coroutine(const Memory& memory, const LuaStacks& lua, Address L) {
  constexpr Address most = 16 << 10;  // a coroutine with a deeper stack probably waits
  const auto [stack, end] = lua.stack_of(memory, L);
  if (plausible_pointer(stack) && end > stack && end - stack <= most) memory.prefetch(stack, end - stack);
}

}  // namespace luaspy
