#pragma once
// Values of a target as a person reads them: {1, 2, name = "x", …(3 more)}, function (a.lua:10),
// file (0x55d0c8a3b6b0).

#include <optional>
#include <string>
#include <unordered_map>

#include "luastate/names.h"
#include "luastate/tables.h"
#include "luastate/value.h"

namespace luaspy {

struct ValueLimits {
  std::size_t string_bytes = 64;  // of a string that are shown
  std::size_t entries = 8;        // of a table, and varargs
  int depth = 1;                  // tables in tables; those that lie deeper are {…}
  std::size_t text_bytes = 2000;  // of a value's text: a table that is longer is cut where it gets there
  std::size_t variables = 250;    // of a call
};
inline constexpr ValueLimits verbose_limits = {
    .string_bytes = 1000, .entries = 100, .depth = 2, .text_bytes = 64 << 10};

// The values of one lua_State, in one stop: what it has learned of tables and metatables counts
// while `memory` stays as it is.
class ValueText {
 public:
  // All have to outlive it.
  ValueText(const Memory& memory, const Dialect& dialect, Address G, Address L, Names& names,
            const ValueLimits& limits);

  // Valid UTF-8 without control characters, of bounded length. Steps and depth are bounded too,
  // whatever refers to whatever.
  std::string text(const Value& value);

 private:
  void append(std::string& text, const Value& value, int depth);
  std::string string_text(Address string);
  void append_table(std::string& text, Address table, int depth);
  void append_entries(std::string& text, const TableParts& parts, int depth);
  void append_key(std::string& text, const Value& key, std::uint64_t& next_index);
  std::string number_text(double number) const;
  std::string function_text(Address closure);
  std::string c_function_text(Address key, Address shown);
  std::string proto_text(Address proto, Address key);
  std::string userdata_text(Address userdata);
  std::string file_text(Address memory) const;
  std::string thread_text(Address thread) const;
  std::string cdata_text(Address cdata) const;
  std::optional<std::string> metatable_name(Address metatable);
  const std::unordered_map<Address, std::string>& registered();

  const Memory& memory_;
  const Dialect& dialect_;
  Address G_, L_;
  Names& names_;
  ValueLimits limits_;
  TableForm form_;
  Address globals_ = 0;
  std::uint64_t slots_left_ = 0;  // of tables, that the value at hand may still be looked at
  std::optional<std::unordered_map<Address, std::string>> registered_;  // names of the tables that the registry has:
                                                                        // luaL_newmetatable
};

}  // namespace luaspy
