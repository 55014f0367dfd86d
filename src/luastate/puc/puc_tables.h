#pragma once
// Look-ups in PUC's tables by string key, as names need them.

#include <functional>
#include <string>

#include "luastate/puc/puc_lua.h"

namespace luaspy {

struct TableEntry {
  std::string key;
  std::uint32_t tag = 0;  // of the value
  Address value = 0;      // first word of the value: a pointer for objects, the function for a light C function
  std::span<const std::byte> bytes{};  // the whole Value, during the visit
};

// Calls `visit` for each entry with a string key, until it returns false. False if the table cannot
// be read. Limited to 2^16 nodes.
bool visit_table(const Memory& memory, const PucLua& lua, TableForm form, Address table,
                 const std::function<bool(const TableEntry&)>& visit);

// registry[LUA_LOADED_TABLE] (lauxlib.h); 0 if it is not there.
Address loaded_table(const Memory& memory, const PucLua& lua, TableForm form, Address G);

bool is_table_tag(const PucLua& lua, std::uint32_t tag);

}  // namespace luaspy
