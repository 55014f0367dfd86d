#pragma once
// Signs that a file holds a Lua core, in its constant data alone: the version strings, where they
// are, and what every core contains, whatever it calls itself.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace luaspy {

// A Lua core in a file.
struct LuaIdent {
  // The version is "5.4.4", the series "5.4", "5.?", "LuaJIT 2.1.0-beta3", or "Luau". The text is where it
  // was found.
  std::string version, text;
  // Certainty. 3: lua_ident, PUC's table of opcodes, LuaJIT's version beside its messages, or what only
  // Luau has; 2:
  // PUC's messages, or LuaJIT's version alone; 1: only the series.
  int strength = 0;
  int copies = 1;  // how many of this version are linked into the file
};

class LuaSigns {
 public:
  // Call for one piece of the file after the other. Each has the first `overlap` bytes of the next
  // one at its end, which are not part of it.
  static constexpr std::size_t overlap = 128;
  void look_at(std::string_view piece, std::size_t size);
  // Is it worth passing the pieces again, to search for their tables?
  bool may_have_tables() const { return has_events_; }
  void look_for_tables(std::string_view piece, std::size_t size);
  // The Luas in the file: all that are certain, of PUC and LuaJIT; without any, the most likely
  // one.
  std::vector<LuaIdent> found() const;

 private:
  void add_ident(LuaIdent ident);
  bool is_luau() const { return luau_idents_ > 0 || (has_luau_event_ && has_luau_version_); }

  static constexpr std::size_t series_count = 5;  // 5.1 to 5.5
  std::vector<LuaIdent> idents_;
  std::optional<LuaIdent> luajit_, series_;
  std::array<int, series_count> tables_{};
  bool has_luajit_messages_ = false, has_events_ = false, has_parser_ = false, has_comparison_ = false;
  int luau_idents_ = 0;
  bool has_luau_event_ = false, has_luau_version_ = false;
};

}  // namespace luaspy
