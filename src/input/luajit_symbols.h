#pragma once
// The functions that a stream of LuaJIT's own profilers names: its symbol table, and what the stream adds to it later.
// Formats of tarantool/luajit, whose grammar is in lj_symtab.h: "ljs" of version 3.
//
// An address may come again for another function, and a trace's number for another trace: each of these is a
// generation, numbered from 1. What is asked for is of the generation that is the last one at that moment.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/frame.h"
#include "input/byte_reader.h"

namespace luaspy {

// Where in the program something happened.
struct LuajitPlace {
  enum class Kind : std::uint8_t { internal, lua, c, trace };
  Kind kind = Kind::internal;
  std::uint64_t address = 0;  // lua: of the prototype; c: of the function or in it; trace: its number
  int line = 0;               // lua
  std::uint32_t generation = 1;
  auto operator<=>(const LuajitPlace&) const = default;
};

class LuajitSymbols {
 public:
  enum class Symbol : std::uint8_t { lua, c, trace };

  // The table at the beginning, with its head. "" or what is wrong with it.
  std::string read_table(ByteReader& in);
  // One symbol. False: it is damaged, or there are too many.
  bool read(Symbol symbol, ByteReader& in);

  LuajitPlace lua(std::uint64_t prototype, int line) const;
  LuajitPlace c(std::uint64_t address) const;
  LuajitPlace trace(std::uint64_t number) const;

  // As the reference parsers write it: "@a.lua:3", "lj_cf_load:0x55ff296479f0", "TRACE [2] started at @a.lua:3",
  // "INTERNAL". Names of chunks that have several lines are replaced by aliases.
  std::string text(const LuajitPlace& place) const;
  // As luaspy shows it. `vm`: frames of Lua's own code and of the start of the process are marked as such.
  Frame frame(const LuajitPlace& place) const;
  // The native function in which this address is: where it begins, and its name now; 0 if it is not known.
  struct NativeFunction {
    std::uint64_t start = 0;
    std::string_view name{};
  };
  NativeFunction native(std::uint64_t address) const;
  // The name of a fast function (ffid), "string.rep". The stream only has its number, which means something else in
  // another build: it is named if the symbols are those of the build whose numbers are known, else "fast function 12".
  std::string fast_function(std::uint64_t number) const;

  // Chunk names of several lines, in the order of their numbers: "function_alias_1" and so on.
  const std::vector<std::string>& aliases() const { return aliases_; }

 private:
  struct LuaFunction {
    std::string chunk;
    std::uint64_t line_defined = 0;
  };
  struct Trace {
    LuajitPlace start;
  };
  const LuaFunction* lua_function(const LuajitPlace& place) const;
  const std::string* c_name(const LuajitPlace& place) const;
  bool has_room_for(std::size_t text);

  std::unordered_map<std::uint64_t, std::vector<LuaFunction>> lua_;
  std::map<std::uint64_t, std::vector<std::string>> c_;
  std::unordered_map<std::uint64_t, std::vector<Trace>> traces_;
  std::vector<std::string> aliases_;
  std::unordered_map<std::string, std::size_t> alias_index_;
  std::size_t count_ = 0, text_bytes_ = 0;
  bool has_library_ = false, is_known_build_ = true;  // by the names of the library's functions
};

}  // namespace luaspy
