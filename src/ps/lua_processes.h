#pragma once
// The processes that run Lua, as far as luaspy may see them. Processes are neither stopped nor
// changed.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "luastate/detect.h"

namespace luaspy {

struct LuaProcess {
  pid_t pid = 0;
  uid_t uid = 0;                    // effective
  std::string user;                 // its name, or the number
  std::string name, command;        // unchanged, so possibly not printable
  std::string executable, program;  // the path of its file (executable_of()), and by which it was started
                                    // (program_of())
  std::vector<LuaImage> images;
  bool is_32bit = false;
  int threads = 0;
  double cpu_percent = 0;             // of one CPU, during measure_cpu; all threads together
  double cpu_seconds = 0;             // of its whole life
  std::string refusal;                // why luaspy may not look into it; empty if it may
  std::optional<std::size_t> states;  // how many global states it has; nullopt if that was not requested, or its memory
                                      // cannot be read
  bool states_complete = false;       // all of its memory was searched
  std::vector<std::string> layouts;   // "Lua 5.4.3-5.4.9": how they are read
};

// Processes that could not be looked at, for one reason.
struct Unseen {
  std::string reason;  // "only root may look at other users' processes (sudo luaspy ps)"
  std::vector<pid_t> pids;
};

struct LuaProcesses {
  std::vector<LuaProcess> processes;
  std::vector<Unseen> unseen;
};

// Ordered by pid. Kernel threads, zombies and luaspy itself are left out. Each file is searched
// once, however many processes map it. `states`: memory is searched for states, up to 256 MiB and
// for 0.5 s of CPU time per process.
LuaProcesses find_lua_processes(bool states);

// Measures how much CPU time they use during a quarter of a second, and sorts them by it, highest
// first.
void measure_cpu(std::vector<LuaProcess>& processes);

// A table for people, with lines of at most `width` columns if possible (0: no bound), and the text
// about unseen processes.
std::string table_of(const std::vector<LuaProcess>& processes, int width);
std::string unseen_text(const std::vector<Unseen>& unseen);

// Whether this is a luaspy process, this one or another.
bool is_luaspy(pid_t pid);

}  // namespace luaspy
