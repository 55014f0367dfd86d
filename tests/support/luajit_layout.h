#pragma once
// Where things are in a LuaJIT that a test makes by hand.

#include "luastate/luajit/layouts.h"

namespace luaspy {

// With references of 64 or of 32 bits, as in the release of 2022.
inline LuajitLayout made_luajit_layout(bool gc64) {
  LuajitLayout layout = gc64 ? layout_rows::luajit_gc64 : layout_rows::luajit_gc32;
  layout.str_len = gc64 ? 20 : 16;
  layout.str_data = gc64 ? 24 : 20;
  layout.main_L_below = gc64 ? 96 : 64;
  layout.G_gc = 16;
  layout.G_mainthref = gc64 ? 192 : 140;
  layout.G_registry = gc64 ? 272 : 216;
  layout.G_cur_L = gc64 ? 376 : 296;
  layout.G_jit_base = gc64 ? 384 : 300;
  layout.G_gcroot = gc64 ? 424 : 336;
  return layout;
}

}  // namespace luaspy
