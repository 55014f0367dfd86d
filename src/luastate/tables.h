#pragma once
// The contents of PUC's and LuaJIT's tables; look-ups by string key, as names need them; and
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
  Address value = 0;      // first word of the value: a pointer for objects, the function for a light C function
};

// The offsets of Table's fields. Rows have the original ones; some programs patch Table (Redis adds
// a field).
struct TableForm {
  Offset lsizenode, node, sizearray, array, metatable;
  bool operator==(const TableForm&) const = default;
};

TableForm stock_form(const Layout& layout);

// Calls `visit` for each entry with a string key, until it returns false. False if the table cannot
// be read. Limited to 2^16 nodes.
bool visit_table(const Memory& memory, const Layout& layout, TableForm form, Address table,
                 const std::function<bool(const TableEntry&)>& visit);

// The form of this process's tables: the one with which the registry's _LOADED has a _G. nullopt if
// none fits, for example before the libraries are open.
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
// `form` is used for PUC only. nullopt if there is no table at `table`.
std::optional<TableParts> read_table_parts(const Memory& memory, const Dialect& dialect, TableForm form, Address table);

// Calls `visit` for each entry that is not nil, until it returns false; those of the array part
// come first, in order. Looks at up to `most_slots`, read in pieces. False if it ended for any
// other reason.
bool visit_entries(const Memory& memory, const Dialect& dialect, const TableParts& parts, std::uint64_t most_slots,
                   const std::function<bool(const Value& key, const Value& value)>& visit);

// The table of globals of `L`; 0 if it cannot be read.
Address globals_table(const Memory& memory, const Dialect& dialect, TableForm form, Address G, Address L);

bool is_table_tag(const Layout& layout, std::uint32_t tag);

// A function of package.loaded.
struct LoadedFunction {
  Address key = 0;      // C: LuaCall.key; Lua: its first instruction (LuaCall.code)
  Address closure = 0;  // 0: a light C function
  Address proto = 0;    // Lua
};
// Calls `visit` for each function of each module of package.loaded, until it returns false, with
// for example "string", "gsub" and the function. A module that is itself a function has no second
// name.
using LoadedVisitor = std::function<bool(const std::string& module, const std::string& name,
                                         const LoadedFunction& function)>;
void visit_loaded(const Memory& memory, const Dialect& dialect, Address G, const LoadedVisitor& visit);

}  // namespace luaspy
