#pragma once
// The system calls that luaspy makes on a target. errno is read here and nowhere else; callers get
// a Failure.

#include <sys/types.h>
#include <sys/uio.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/registers.h"

struct user_regs_struct;  // sys/user.h

namespace luaspy::system {

// A system call's answer when it fails: the value that errno had. 0 means success.
struct Failure {
  int code = 0;
  explicit operator bool() const { return code != 0; }
  bool no_such_process() const;
  bool not_permitted() const;
  bool not_implemented() const;
  bool not_found() const;
  std::string text() const;
};

FileDescriptor open_file(const std::string& path, int flags, Failure* failure = nullptr);
// By openat2(2): `path` is one of a process whose root is `root`, "/" and all symbolic links
// included.
FileDescriptor open_in_root(const FileDescriptor& root, const std::string& path, int flags, Failure* failure);
// The whole of a file of /proc (bounded at 64 MiB); nullopt if it cannot be opened or read.
std::optional<std::string> read_file(const std::string& path);
// Re-reads a /proc file that is kept open, from its start, into `buffer`. The text read; empty on
// failure.
std::string_view reread(const FileDescriptor& file, std::span<char> buffer);
std::optional<std::string> read_link(const std::string& path);
// Names in a directory that are numbers, ascending.
std::vector<pid_t> numeric_entries(const std::string& directory, Failure* failure = nullptr);

// Bytes read; a failure if none could be. The kernel stops at the first remote range that it cannot
// read.
Failure read_memory(pid_t pid, std::span<const iovec> local, std::span<const iovec> remote, std::size_t& bytes_read);
// From an open /proc/PID/mem, all of it or false.
bool read_at(const FileDescriptor& file, Address address, std::span<std::byte> into);
// The same, as far as it goes: the bytes read. `is_gone`: the memory that it was opened for is not
// there any more (fs/proc/base.c, mem_rw()).
std::size_t read_some_at(const FileDescriptor& file, Address address, std::span<std::byte> into, bool& is_gone);

// Whether there is a process of that number, whatever /proc shows; not_permitted: there is one of
// somebody else's.
Failure find_process(pid_t pid);
// Whether ptrace(2) is there for luaspy at all; asked of no process.
Failure may_stop();
Failure seize(pid_t tid);
Failure interrupt(pid_t tid);
// Lets a stopped thread run untraced, delivering `signal` to it if not 0.
Failure detach(pid_t tid, int signal);
// `at_system_call`: the thread stopped at the return from a system call (orig_rax is its number),
// not where an interrupt met it.
Failure read_registers(pid_t tid, Registers& registers, bool* at_system_call = nullptr);
Registers registers_of(const user_regs_struct& raw);

struct WaitStatus {
  enum class Kind { none, stopped, ended, interrupted } kind = Kind::none;
  int signal = 0;                  // stopped: the signal that has to be delivered at detach, 0 if none
  std::optional<int> exit_status;  // ended: as the shell reports it: the exit code, or 128 + signal; none if another
                                   // heard it first
};
// Waits for the state change of a traced thread or a child. With `block` false: none if there is no
// change yet. `interrupted` when a signal came to luaspy first.
WaitStatus wait_for(pid_t tid, bool block);
// The same for whichever of the threads that the calling one traces is first; `tid` says which.
WaitStatus wait_for_any(pid_t& tid);
// How a child of luaspy's has ended; kind none while it has not. It takes no stop: waitpid(2) by
// any thread of a process takes the stops of what another of its threads traces, and that thread
// would wait for ever.
WaitStatus wait_for_end(pid_t child);
// Waits until the child has ended, a signal comes, or so long.
void await_end(pid_t child, std::chrono::milliseconds patience);

using Clock = std::chrono::steady_clock;
inline std::int64_t to_ns(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}
// Sends the thread that has made it a SIGALRM, which ends its wait, at a time. The timer expires on
// the CPU where it was set.
class Alarm {
 public:
  Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm();
  void set(Clock::time_point time);

 private:
  void* timer_ = nullptr;  // timer_t
  bool exists_ = false;
};

// Sleeps until `deadline`. False if a signal came first.
bool sleep_until(Clock::time_point deadline);

bool is_terminal(int file_descriptor);
std::size_t terminal_width(int file_descriptor);  // columns; 0 if it is no terminal

}  // namespace luaspy::system
