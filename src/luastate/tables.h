#pragma once
// The hash part of Lua tables, as far as names need it: string keys and what they refer to; and package.loaded, PUC's and LuaJIT's.

#include <functional>
#include <optional>
#include <string>

#include "luastate/dialect.h"
#include "memory.h"

namespace luaspy {

struct TableEntry {
  std::string key;
  std::uint32_t tag = 0;   // of the value
  Address value = 0;       // its first word: a pointer for objects, the function for a light C function
};

// Where Table keeps its nodes. Rows have the stock place; some programs patch Table (Redis adds a field).
struct TableForm {
  Offset lsizenode, node;
  bool operator==(const TableForm&) const = default;
};

// Calls `visit` for each entry with a string key; stops when it returns false. False if the table cannot be read.
// Bounded at 2^16 nodes.
bool visit_table(const Memory& memory, const Layout& layout, TableForm form, Address table, const std::function<bool(const TableEntry&)>& visit);

// The form that this process's tables have: the one in which the registry's _LOADED has a _G. nullopt if none fits, as
// before the libraries are open.
std::optional<TableForm> find_table_form(const Memory& memory, const Layout& layout, Address G);

// registry[LUA_LOADED_TABLE] (lauxlib.h); 0 if it is not there.
Address loaded_table(const Memory& memory, const Layout& layout, TableForm form, Address G);

bool is_table_tag(const Layout& layout, std::uint32_t tag);

// Calls `visit` for each function of each module of package.loaded, until it returns false: "string", "gsub" and the function's
// key (LuaCall.key). A module that is a function has no second name. PUC: C functions only.
void visit_loaded(const Memory& memory, const Dialect& dialect, Address G,
                  const std::function<bool(const std::string& module, const std::string& name, Address key)>& visit);

}  // namespace luaspy
