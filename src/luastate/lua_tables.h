#pragma once
// Tables, and the values in them.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "base/memory.h"
#include "luastate/lua_values.h"
#include "luastate/tables.h"

namespace luaspy {

class LuaTables : public LuaValues {
 public:
  // The form of this process's tables; nullopt if it cannot be told yet.
  virtual std::optional<TableForm> find_table_form(const Memory& memory, Address G) const = 0;
  virtual TableForm stock_table_form() const = 0;
  virtual std::optional<TableParts> table_parts(const Memory& memory, TableForm form, Address table) const = 0;
  // Calls `visit` for each entry that is not nil, until it returns false; those of the array part
  // come first, in order. Looks at up to `most_slots`, read in pieces. False if it ended for any
  // other reason.
  bool visit_entries(const Memory& memory, const TableParts& parts, std::uint64_t most_slots,
                     const std::function<bool(const Value& key, const Value& value)>& visit) const;
  // The key and the value of node `number` of the hash part, which may be free: then the value is nil.
  std::optional<std::pair<Value, Value>> node(const Memory& memory, const TableParts& parts,
                                              std::uint32_t number) const;
  // Calls `visit` for the first `count` nodes of the hash part, also free ones, until it returns false. False if it
  // ended for any other reason.
  bool visit_nodes(const Memory& memory, const TableParts& parts, std::uint32_t count,
                   const std::function<bool(std::uint32_t number, const Value& key, const Value& value)>& visit) const;
  // The table of globals of `L`; 0 if it cannot be read.
  virtual Address globals_table(const Memory& memory, TableForm form, Address G, Address L) const = 0;

 protected:
  using LuaValues::LuaValues;
  ~LuaTables() = default;

  // A key and its value in a hash part.
  virtual std::pair<Value, Value> load_node(std::span<const std::byte> node) const = 0;
  // Calls `visit` for the first `count` slots of the array part.
  virtual bool visit_array(const Memory& memory, const TableParts& parts, std::uint64_t count,
                           const std::function<bool(std::uint64_t index, const Value& value)>& visit) const;
};

}  // namespace luaspy
