#pragma once
// Lua tables: what is in them, PUC's and LuaJIT's; by string keys, as names need them; and
// package.loaded.

#include <functional>
#include <optional>
#include <string>

#include "base/memory.h"
#include "luastate/dialect.h"
#include "luastate/value.h"

namespace luaspy {

struct TableEntry {
  std::string key;
  std::uint32_t tag = 0;  // of the value
  Address value = 0;      // its first word: a pointer for objects, the function for a light C function
};

// Where Table keeps its parts. Rows have the stock places; some programs patch Table (Redis adds a
// field).
struct TableForm {
  Offset lsizenode, node, sizearray, array, metatable;
  bool operator==(const TableForm&) const = default;
};

TableForm stock_form(const Layout& layout);

// Calls `visit` for each entry with a string key; stops when it returns false. False if the table
// cannot be read. Bounded at 2^16 nodes.
bool visit_table(const Memory& memory, const Layout& layout, TableForm form, Address table,
                 const std::function<bool(const TableEntry&)>& visit);

// The form that this process's tables have: the one in which the registry's _LOADED has a _G.
// nullopt if none fits, as before the libraries are open.
std::optional<TableForm> find_table_form(const Memory& memory, const Layout& layout, Address G);

// registry[LUA_LOADED_TABLE] (lauxlib.h); 0 if it is not there.
Address loaded_table(const Memory& memory, const Layout& layout, TableForm form, Address G);

// Where a table has its entries.
struct TableParts {
  Address array = 0;             // 0: no such part
  std::uint32_t array_size = 0;  // slots; LuaJIT: slot 0 is index 0, PUC: index 1
  Address nodes = 0;
  std::uint32_t node_count = 0;
  Address metatable = 0;  // 0: none
  std::uint64_t slots() const { return std::uint64_t{array_size} + node_count; }
};
// `form` counts for PUC only. nullopt if there is no table at `table`.
std::optional<TableParts> read_table_parts(const Memory& memory, const Dialect& dialect, TableForm form, Address table);

// Calls `visit` for each entry that is not nil, those of the array part first and in order, until
// it returns false. At most `most_slots` are looked at, which are read in pieces. False if it came
// to none of these ends.
bool visit_entries(const Memory& memory, const Dialect& dialect, const TableParts& parts, std::uint64_t most_slots,
                   const std::function<bool(const Value& key, const Value& value)>& visit);

// The table of globals that `L` has; 0 if it cannot be read.
Address globals_table(const Memory& memory, const Dialect& dialect, TableForm form, Address G, Address L);

bool is_table_tag(const Layout& layout, std::uint32_t tag);

// A function of package.loaded.
struct LoadedFunction {
  Address key = 0;      // C: LuaCall.key; Lua: its first instruction (LuaCall.code)
  Address closure = 0;  // 0: a light C function
  Address proto = 0;    // Lua
};
// Calls `visit` for each function of each module of package.loaded, until it returns false:
// "string", "gsub" and the function. A module that is a function has no second name.
using LoadedVisitor = std::function<bool(const std::string& module, const std::string& name,
                                         const LoadedFunction& function)>;
void visit_loaded(const Memory& memory, const Dialect& dialect, Address G, const LoadedVisitor& visit);

}  // namespace luaspy
