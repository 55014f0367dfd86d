#pragma once
// The Lua that a global state belongs to, and the row to read its objects with: exactly one of the
// two is set.

#include <string>

#include "luastate/luajit/luajit_layout.h"
#include "luastate/puc/layout.h"

namespace luaspy {

struct Dialect {
  const Layout* puc = nullptr;
  const LuajitLayout* luajit = nullptr;

  bool operator==(const Dialect&) const = default;
};

// "Lua 5.4.3-5.4.9"; "LuaJIT, 64-bit references".
inline std::string name_of(const Dialect& lua) {
  if (lua.puc != nullptr) return "Lua " + std::string(lua.puc->name);
  return lua.luajit->gc64 ? "LuaJIT, 64-bit references" : "LuaJIT, 32-bit references";
}

}  // namespace luaspy
