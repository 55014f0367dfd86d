#include "luastate/known_functions.h"

namespace luaspy {
namespace {

constexpr std::size_t most = 1 << 15;   // places; a program may make closures without end

}  // namespace

std::size_t KnownFunctions::slot_of(Address closure) const {
  const std::size_t mask = closures_.size() - 1;
  std::size_t at = closure * 0x9e37'79b9'7f4a'7c15 >> 32 & mask;
  while (closures_[at] != 0 && closures_[at] != closure) at = (at + 1) & mask;
  return at;
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
    if (!has(call.closure) && 2 * ++count_ > closures_.size()) grow();
    const std::size_t at = slot_of(call.closure);
    closures_[at] = call.closure;
    whats_[at] = what(call);
  }
}

void KnownFunctions::grow() {
  if (closures_.size() == most) {
    clear();
    count_ = 1;   // the one that is being added
    return;
  }
  const std::vector<Address> closures(std::move(closures_));
  const std::vector<What> whats(std::move(whats_));
  closures_.assign(2 * closures.size(), 0);
  whats_.assign(2 * closures.size(), {});
  for (std::size_t i = 0; i < closures.size(); ++i) {
    if (closures[i] == 0) continue;
    const std::size_t at = slot_of(closures[i]);
    closures_[at] = closures[i];
    whats_[at] = whats[i];
  }
}

}  // namespace luaspy
