#pragma once
// The processes that a target has started and that run Lua, where only the target itself is looked at: users
// name a wrapper, or a server's master, and the work is done elsewhere. Only /proc and mapped files are read.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "system/calls.h"

namespace luaspy {

// The name of the first Lua that is mapped into a process and that luaspy reads, "Lua 5.4.4"; nullopt if there is none,
// or if luaspy may not look at the process.
std::optional<std::string> lua_in(pid_t pid);

class LuaDescendants {
 public:
  // Notes the CPU time of all descendants of `pid`, up to 4096.
  explicit LuaDescendants(pid_t pid);

  struct Busy {
    pid_t pid = 0;
    bool is_child = false;       // else a more distant descendant
    std::string command;         // not printable, possibly
    std::string lua;             // as lua_in() names it
    std::int64_t cpu_ns = 0;     // that it has used since this was made
    std::int64_t passed_ns = 0;  // since then, at least 1
  };
  // The living descendant that has used most CPU time since this was made, of those that run Lua; nullopt if none has
  // used 1 % of a CPU. Looks for a Lua in the 16 busiest ones, in each once in 10 s: that reads all files that are
  // mapped into it, and top asks each second.
  std::optional<Busy> busiest();

 private:
  struct Asked {
    system::Clock::time_point at;
    std::optional<std::string> lua;
  };
  const std::optional<std::string>& lua_of(pid_t pid);

  pid_t pid_;
  system::Clock::time_point since_;
  std::map<pid_t, std::int64_t> cpu_ns_;
  std::map<pid_t, Asked> asked_;
};

// "Its child 4712 (nginx: worker process) runs LuaJIT 2.1 at 80 % CPU: luaspy record --pid 4712, or -s --pid 4711
// for all of them.", with this command's name. `pid`: the target. No line break.
std::string busy_text(const LuaDescendants::Busy& busy, std::string_view command, pid_t pid);

}  // namespace luaspy
