#pragma once
// What the files in /proc say of a process, by its number. It may have ended, and luaspy might not be
// allowed to look at it: then they say less, or nothing.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped.h"

namespace luaspy {

std::string proc_path(pid_t pid, std::string_view file);  // "/proc/PID/file"
inline constexpr std::size_t most_shown = 1 << 16;        // bytes of a command or a path

// proc(5): "pid (comm) state …"; comm may contain spaces and parentheses. '?' if there is no state.
char state_in(std::string_view stat);
inline bool lives(char state) { return state != '?' && state != 'Z' && state != 'X'; }
bool thread_lives(pid_t pid, pid_t tid);
// A thread's name, printable: a thread can set it to any bytes (prctl(2), PR_SET_NAME).
std::string name_in(const std::string& comm_file);

// A live thread of the process: the first one if it is alive, `pid` if none is. /proc/PID/…
// describes the first thread; once that has ended (pthread_exit(3) in main), maps and exe are empty
// there and process_vm_readv(2) finds no memory, while /proc/TID/… of another thread still has all
// of it.
pid_t living_thread(pid_t pid);
// Where /proc/PID/exe points; "?" if that cannot be read.
std::string executable_of(pid_t pid);

// The live processes that `pid`'s threads have started; empty if the kernel does not report them
// (CONFIG_PROC_CHILDREN).
std::vector<pid_t> children_of(pid_t pid);
// Mapped::open_mapped() and file_version(), and Process::command(), for a process that luaspy might not be allowed to
// look at.
FileDescriptor open_mapped(pid_t pid, const Mapping& mapping);
std::optional<FileVersion> version_of(pid_t pid, const Mapping& mapping);
std::string command_of(pid_t pid);

// The CPU time that a process has used, with that of its threads that have ended; nullopt if it is gone.
struct ProcessCpuTime {
  std::int64_t ns = 0;                      // exact
  std::int64_t user_ns = 0, system_ns = 0;  // the same, each rounded down to clock ticks
  std::int64_t tick_ns = 10'000'000;        // USER_HZ (time(7))
  std::int64_t children_ns = 0;             // of children that have ended and were waited for, theirs included
};
std::optional<ProcessCpuTime> cpu_time_of(pid_t pid);

}  // namespace luaspy
