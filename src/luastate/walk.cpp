#include "luastate/walk.h"

namespace luaspy {

const LuaCall* LuaWalk::caller_of(std::size_t i) const {
  if (calls[i].gap) return nullptr;
  if (left_out != 0 && i + 1 == cut_at) return cut_caller.ci != 0 ? &cut_caller : nullptr;
  return i + 1 < calls.size() ? &calls[i + 1] : nullptr;
}

}  // namespace luaspy
