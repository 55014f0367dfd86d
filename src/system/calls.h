#pragma once
// The system calls that luaspy makes on a target. errno is read only in src/system; callers get a
// Failure.

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

struct perf_event_attr;  // linux/perf_event.h
struct pollfd;           // poll.h

namespace luaspy::system {

// The result of a system call: the value of errno if it failed, 0 if it succeeded.
struct Failure {
  int code = 0;
  explicit operator bool() const { return code != 0; }
  bool no_such_process() const;
  bool not_permitted() const;
  bool access_denied() const;  // EACCES alone
  bool no_space() const;
  bool too_many_files() const;
  bool not_implemented() const;
  bool not_found() const;
  std::string text() const;
};

// Bytes in a page of the kernel that luaspy runs on, and so of every live target (Machine::page_sizes).
// May be called by signal handlers.
std::size_t page_size();

FileDescriptor open_file(const std::string& path, int flags, Failure* failure = nullptr);
// Uses openat2(2): `path`, including a leading "/" and all symbolic links, is resolved as in a
// process whose root is `root`.
FileDescriptor open_in_root(const FileDescriptor& root, const std::string& path, int flags, Failure* failure);
// Reads a whole file of /proc (at most 64 MiB); nullopt if it cannot be opened or read.
std::optional<std::string> read_file(const std::string& path);
// Reads an open /proc file again, from its start, into `buffer`. Returns the text; empty on
// failure.
std::string_view reread(const FileDescriptor& file, std::span<char> buffer);
std::optional<std::string> read_link(const std::string& path);
// Which file a path leads to, and of what type (S_IFMT), as far as the kernel knows without asking
// the file system: one that does not answer, of a server that is gone, would block (statx(2),
// AT_STATX_DONT_SYNC). nullopt if that is not known.
struct FileIdentity {
  std::uint32_t type = 0;
  std::uint64_t device = 0, inode = 0;
  bool operator==(const FileIdentity&) const = default;
};
std::optional<FileIdentity> file_identity(const std::string& path);
// Why a file cannot be read: no such file, no permission, or it is a directory. 0: it can. A pipe is not opened.
Failure why_unreadable(const std::string& path);
// A new file, for appending, that only its user may read. `path` ends in XXXXXX, and becomes its name (mkostemp(3)).
FileDescriptor make_temporary_file(std::string& path, Failure& failure);
// Writes all of it, unless that fails.
Failure write_all(int file_descriptor, std::string_view bytes);
// Names in a directory that are numbers, ascending.
std::vector<pid_t> numeric_entries(const std::string& directory, Failure* failure = nullptr);

// Sets the number of bytes read; fails if none could be read. The kernel stops at the first remote
// range that it cannot read.
Failure read_memory(pid_t pid, std::span<const iovec> local, std::span<const iovec> remote, std::size_t& bytes_read);
// Reads from an open /proc/PID/mem; false if not all of it could be read.
bool read_at(const FileDescriptor& file, Address address, std::span<std::byte> into);
// The same, as far as possible. Returns the number of bytes read. `is_gone`: the memory for which
// the file was opened no longer exists (fs/proc/base.c, mem_rw()).
std::size_t read_some_at(const FileDescriptor& file, Address address, std::span<std::byte> into, bool& is_gone);

// ioctl(2). `result`: what it returned, if it has not failed.
Failure control(const FileDescriptor& file, unsigned long request, void* argument, int& result);

// Checks whether a process with this number exists, independently of what /proc shows;
// not_permitted: it exists and belongs to another user.
Failure find_process(pid_t pid);
// Checks whether luaspy may use ptrace(2) at all, without naming a process.
Failure may_stop();
Failure seize(pid_t tid);
Failure interrupt(pid_t tid);
// Whether the signal that a stopped thread is about to get comes from a file that became ready
// (fcntl(2), F_SETSIG), and not from a process.
bool is_from_file(pid_t tid);
// Where the breakpoint is for which a stopped thread is about to get SIGTRAP. nullopt: it is another
// signal, or has come from a process.
std::optional<Address> trapped_at(pid_t tid);
// Resumes a stopped thread, still traced.
Failure resume(pid_t tid);
// Resumes a stopped thread, no longer traced, and delivers `signal` to it if that is not 0.
Failure detach(pid_t tid, int signal);
// `at_system_call`: the thread stopped at the return from a system call, not where an interrupt
// stopped it.
Failure read_registers(pid_t tid, Registers& registers, bool* at_system_call = nullptr);

// perf_event_open(2), for a thread; `group`: its leader, -1 for none; `cpu`: only there, -1 for all. Sets
// `failure` if it fails.
FileDescriptor open_perf_event(const perf_event_attr& attributes, pid_t tid, int group, Failure& failure, int cpu = -1);
// ppoll(2): sleeps until one of the files has something, a signal comes, or so many ns have passed.
void wait_for_files(std::span<pollfd> files, std::int64_t most_ns);
// Sends `signal` to a thread whenever the file has something to read (fcntl(2), F_SETSIG).
Failure send_signal_when_ready(const FileDescriptor& file, int signal, pid_t tid);

struct WaitStatus {
  enum class Kind { none, stopped, ended, interrupted } kind = Kind::none;
  int signal = 0;                  // stopped: the signal that must be delivered at detach; 0 if there is none
  bool stays_stopped = false;      // stopped: by a signal like SIGSTOP, until SIGCONT comes
  std::optional<int> exit_status;  // ended: the exit code or 128 + signal, as a shell reports it; nullopt if another
                                   // thread received it first
};
// Waits for a state change of a traced thread or a child. `none`: with `block` false, and no change
// so far. `interrupted`: luaspy received a signal first.
WaitStatus wait_for(pid_t tid, bool block);
// The same for any thread that the calling one traces; `tid` is set to the first that changes.
WaitStatus wait_for_any(pid_t& tid);
// If the traced thread, whichever thread of luaspy traces it, has ended, this takes the report of its
// end, and of nothing else. Not for the first thread of a child: how the child ended would be lost.
bool reap_if_ended(pid_t tid);
// How a child of luaspy has ended; kind none if it has not. This leaves reports of stops alone:
// waitpid(2) by one thread of a process can take stop reports that belong to another thread, the
// tracer, which would then wait for ever.
WaitStatus wait_for_end(pid_t child);
// Waits until the child has ended, a signal comes, or `patience` has passed.
void await_end(pid_t child, std::chrono::milliseconds patience);

using Clock = std::chrono::steady_clock;
inline std::int64_t to_ns(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}
// At a given time, sends a SIGALRM to the thread that has created the Alarm, which ends that
// thread's wait. The timer expires on the CPU where it was set.
class Alarm {
 public:
  Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm();
  // `again`: if not 0, it is sent again that often until clear(): one that comes right before the wait
  // does not end it.
  void set(Clock::time_point time, Clock::duration again = {});
  void clear();

 private:
  void* timer_ = nullptr;  // timer_t
  bool exists_ = false;
};

// Sleeps until `deadline`. False if a signal came first.
bool sleep_until(Clock::time_point deadline);

bool is_terminal(int file_descriptor);

}  // namespace luaspy::system
