#pragma once
// The functions that a program keeps where others find them, by name: in package.loaded and the
// tables of its modules, and in the registry's metatables.
//
//     package.loaded.M          a function, or a module                        Level::module
//     package.loaded.M.f        a function of a module; of _G: a global        Level::module
//     package.loaded.M.T.f      a function of a table in a module: a class     Level::table
//     package.loaded.M.T.__x.f  of a part of a table: the same as T.f          Level::part
//     registry.NAME.f           a method of a C library's objects: NAME:f      Level::object
//
// Parts are the tables in fields with two underscores (__index, __base, __instanceDict), and the
// metamethods of a metatable. Tables may change while this reads them: what does not fit is left
// out. Everything is bounded.
//
// Several states may be in a target. A function belongs to one of them, but C functions, and names
// of Lua's own library, are often the same in all.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "luastate/lua.h"

namespace luaspy {

class LoadedFunctions {
 public:
  // Where it was found, nearest first.
  enum class Level : std::uint8_t { module, table, part, object };
  struct Name {
    // "string", "bank.Account"; "" for globals, and for modules that are functions. Belongs to the
    // LoadedFunctions.
    std::string_view table;
    std::string key;
    Level level = Level::module;
    // Which one is shown if nothing else decides.
    bool is_before(const Name& other) const;
  };
  // What is known about a function. If a table has more names for it than aliases explain, or
  // closures of it have different names, it is a wrapper for other functions, which it finds in its
  // upvalues (mpv does that). Then it has no name of its own.
  struct Function {
    std::vector<Name> names;  // best first, some of them
    bool is_shared = false;
  };

  // Reads those of the state with this global_State, which takes milliseconds: never in a stop. Adds
  // to what is known; only the names of closures that the state no longer has are forgotten.
  void read(const Lua& lua, const Memory& memory, Address G);

  // For a function of a call that is not known. Modules may have been loaded since, and tables may
  // have changed: reads again if that is worth it, and returns whether it did. `is_new`: this
  // function is asked for for the first time.
  bool read_for_miss(const Lua& lua, const Memory& memory, Address G, bool is_new);

  // Counts the readings. What the functions below return is valid until the next one.
  int readings() const { return reading_; }
  // Of a C function, by LuaCall.key; of a Lua function, by its Proto and LuaCall.mark. nullptr: not
  // known.
  const Function* c_function(Address key) const { return function(key, 0); }
  const Function* lua_function(Address proto, std::uint64_t mark) const { return function(proto, mark); }
  // LuaCall.key of a function of this state's own library; 0: not found.
  Address c_function_named(Address G, std::string_view table, std::string_view key) const;
  // The name of this very closure: different closures of one prototype may be different functions to
  // their callers.
  const Name* closure(Address closure, Address proto, std::uint64_t mark) const;

 private:
  class Reading;
  struct Known : Function {
    Address closure = 0;     // the first closure of it that was seen
    std::uint64_t mark = 0;  // Lua: mark of its Proto at that time
    std::string_view table;  // the last one, in this reading
    int reading = 0, names_in_table = 0;
  };
  struct Closure {
    Name name;
    Address proto = 0;
    std::uint64_t mark = 0;
    Address G = 0;
    int reading = 0;
  };
  // Of one global_State.
  struct State {
    unsigned misses = 0;
    bool has_news = false;  // since it was read, a function was asked for for the first time, and was not known
    std::map<std::string, Address, std::less<>> library;  // C functions of `string`, `io` and the base
  };
  State& state(Address G);
  // What the reading now being made finds.
  void add(Name name, Address key, std::uint64_t mark, Address closure, bool is_lua);
  void add_closure(const Name& name, Address proto, std::uint64_t mark, Address closure);
  const Function* function(Address key, std::uint64_t mark) const;
  std::string_view kept(std::string table) { return *tables_.insert(std::move(table)).first; }

  std::unordered_map<Address, Known> functions_;   // by Proto or LuaCall.key
  std::unordered_map<Address, Closure> closures_;  // of shared functions
  std::unordered_set<std::string> tables_;
  std::unordered_map<Address, State> states_;  // by global_State
  int reading_ = 0;                            // counts read()
  Address reading_G_ = 0;                      // the state that it reads, or read last
  // Of all states together, since it is their time that is bounded.
  using Clock = std::chrono::steady_clock;
  int reads_left_ = 256;
  Clock::time_point read_at_{};  // the end of the last read()
  Clock::duration read_for_{};
};

}  // namespace luaspy
