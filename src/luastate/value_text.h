#pragma once
// Values of a target as readable text: {1, 2, name = "x", …(3 more)}, function (a.lua:10), file
// (0x55d0c8a3b6b0).

#include <optional>
#include <string>
#include <unordered_map>

#include "luastate/locate.h"
#include "luastate/names.h"

namespace luaspy {

struct ValueLimits {
  std::size_t string_bytes = 64;  // bytes shown of a string
  std::size_t entries = 8;        // entries shown of a table, and of varargs; the others are counted
  int depth = 1;                  // levels of nested tables; deeper ones are shown as {…}
  std::size_t text_bytes = 2000;  // length of a value's text: a table that is longer is cut there
  std::size_t variables = 250;    // variables shown of a call
};
inline constexpr ValueLimits verbose_limits = {
    .string_bytes = 1000, .entries = 100, .depth = 2, .text_bytes = 64 << 10};

// The slots that may still be visited to count the entries of tables, 0.1 µs each: one of these for
// all values that are read while the program stands still. Where it is used up, the first slots of a
// table are visited all the same.
struct CountingRoom {
  std::uint64_t slots = 80'000;
  // Lua::with_number_types() of each global_State met.
  std::unordered_map<Address, const Lua*> luas{};
  const Lua& lua(const Memory& memory, const Lua& lua, Address G) {
    const Lua*& known = luas[G];
    if (known == nullptr) known = &lua.with_number_types(memory, G);
    return *known;
  }
};

// Shows values of one lua_State in one stop. What it learns of tables and metatables is valid while
// `memory` does not change.
class ValueText {
 public:
  // All arguments but `state` must outlive it.
  ValueText(const Memory& memory, const ActiveState& state, Names& names, const ValueLimits& limits,
            CountingRoom& room);

  // Valid UTF-8 without control characters, of bounded length. Steps and depth are bounded too,
  // even if values refer to each other in circles.
  std::string text(const Value& value);
  // What a metatable says that its objects are: its __name, or its name in the registry.
  std::optional<std::string> metatable_name(Address metatable);

 private:
  void append(std::string& text, const Value& value, int depth);
  std::string string_text(Address string);
  void append_table(std::string& text, Address table, int depth);
  void append_entries(std::string& text, const TableParts& parts, int depth);
  void append_key(std::string& text, const Value& key, std::uint64_t& next_index);
  std::string function_text(Address closure);
  std::string c_function_text(Address key, Address shown);
  std::string proto_text(Address proto);
  std::string userdata_text(Address userdata);
  std::string file_text(Address memory) const;
  std::string thread_text(Address thread) const;
  const std::unordered_map<Address, std::string>& registered();

  const Memory& memory_;
  const Lua& lua_;
  Address G_, L_;
  Names& names_;
  ValueLimits limits_;
  TableForm form_;
  Address globals_ = 0;
  CountingRoom& room_;
  // Names of the tables in the registry: luaL_newmetatable.
  std::optional<std::unordered_map<Address, std::string>> registered_;
};

}  // namespace luaspy
