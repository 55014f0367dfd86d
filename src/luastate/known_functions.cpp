#include "luastate/known_functions.h"

namespace luaspy {

std::size_t KnownFunctions::slot_of(Address closure) const {
  constexpr std::size_t mask = places - 1;
  std::size_t at = closure * 0x9e37'79b9'7f4a'7c15 >> 32 & mask;
  for (;;) {
    const Address there = closures_[at].load(std::memory_order_relaxed);
    if (there == 0 || there == closure) return at;
    at = (at + 1) & mask;
  }
}

void KnownFunctions::clear() {
  for (std::atomic<Address>& closure : closures_) closure.store(0, std::memory_order_relaxed);
  count_ = 0;
}

bool KnownFunctions::confirm(const LuaWalk& walk) {
  bool all = true;
  for (const LuaCall& call : walk.calls) {
    if (call.closure != 0 && has(call.closure)) all &= whats_[slot_of(call.closure)] == what(call);
  }
  if (!all) clear();
  return all && walk.dropped == 0 && walk.innermost_dropped == 0;
}

void KnownFunctions::add(const LuaWalk& walk) {
  for (const LuaCall& call : walk.calls) {
    if (call.closure == 0) continue;
    if (!has(call.closure) && 2 * ++count_ > places) {
      clear();
      count_ = 1;
    }
    const std::size_t at = slot_of(call.closure);
    whats_[at] = what(call);
    closures_[at].store(call.closure, std::memory_order_relaxed);
  }
}

}  // namespace luaspy
