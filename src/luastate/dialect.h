#pragma once
// Which Lua a global state is, and the row to read its objects with: exactly one of the two is set.

#include "luastate/layout.h"
#include "luastate/luajit_layout.h"

namespace luaspy {

struct Dialect {
  const Layout* puc = nullptr;
  const LuajitLayout* luajit = nullptr;

  bool operator==(const Dialect&) const = default;
};

}  // namespace luaspy
