#pragma once
// Which script of Redis, Valkey or KeyDB a function belongs to. All of them are chunks of one name, "@user_script". The
// server keeps each by the SHA-1 of its text: registry.f_SHA1 from Redis 7.0 on, the global f_SHA1 before
// (script_lua.c, eval.c and scripting.c, luaCreateFunction).

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "luastate/lua.h"
#include "luastate/prototype.h"

namespace luaspy {

// Whether a chunk of this source (Prototype::source) is such a script.
bool is_host_script(std::string_view source);

class HostScripts {
 public:
  // "user_script f_3a2b4c5d", the name of the chunk with the begin of the key; "" if it is not known. Reads the
  // registry again where it does not know the function, in no more than 1 % of the time; never in a stop.
  const std::string& chunk_of(const Lua& lua, const Memory& memory, Address G, const Prototype& prototype,
                              std::uint64_t mark);
  // The same of any function, also of one in a script that was not asked for: that takes a look at all scripts.
  const std::string& chunk_of_any(const Lua& lua, const Memory& memory, Address G, const Prototype& prototype,
                                  std::uint64_t mark);
  // The same, of what was read before.
  const std::string& known_chunk_of(Address proto, std::uint64_t mark) const;
  // The SHA-1 of the script, 40 digits, of what was read before; "" if it is not known.
  std::string_view known_script_of(Address proto, std::uint64_t mark) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Known {
    std::uint64_t mark = 0;
    std::string sha1;
    std::string chunk;
  };
  const Known* known(Address proto, std::uint64_t mark) const;
  void read(const Lua& lua, const Memory& memory, Address G);
  void add_functions_in(const Lua& lua, const Memory& memory, const Prototype& prototype, const Known& script,
                        int& left);

  std::unordered_map<Address, Known> scripts_;  // by Proto: those of the registry and of the globals, as read last
  std::unordered_map<Address, Known> nested_;   // by Proto: the functions in scripts that were asked for
  bool has_all_nested_ = false;                 // of scripts_
  Clock::time_point read_at_{};                 // the end of the last reading
  Clock::duration read_for_{};
};

}  // namespace luaspy
