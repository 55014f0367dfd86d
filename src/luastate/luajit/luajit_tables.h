#pragma once
// Look-ups in LuaJIT's tables (lj_obj.h), as far as names need them. Everything is read while the
// target runs: anything inconsistent counts as nothing.

#include <functional>
#include <optional>
#include <string>

#include "base/memory.h"
#include "luastate/luajit/luajit_layout.h"

namespace luaspy {

// Calls `visit` for each string key, with the value (a TValue), until it returns false. At most
// 2^16 nodes.
void visit_table(const Memory& memory, const LuajitLayout& layout, Address table,
                 const std::function<bool(const std::string& key, std::uint64_t value)>& visit);

// registry[LUA_LOADED_TABLE] (lauxlib.h); 0 if it is not there.
Address loaded_table(const Memory& memory, const LuajitLayout& layout, Address G);

// The value of `object[key]`, also through metatables whose __index is a table. `key` is the
// address of a GCstr: there is one for each text.
std::optional<std::uint64_t> get_field(const Memory& memory, const LuajitLayout& layout, std::uint64_t object,
                                       Address key);

// The value of `object[index]` in the array part.
std::optional<std::uint64_t> get_element(const Memory& memory, const LuajitLayout& layout, std::uint64_t object,
                                         std::uint32_t index);

// The field `name` of the metatable of `object`, which is a table or userdata.
std::optional<std::uint64_t> get_metafield(const Memory& memory, const LuajitLayout& layout, std::uint64_t object,
                                           const std::string& name);

}  // namespace luaspy
