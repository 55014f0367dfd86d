#pragma once
// What a sleeping thread waits for, according to /proc and the arguments of its system call. The
// target is only read, never stopped.

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attach/process.h"
#include "attach/waits/open_files.h"
#include "attach/waits/wait.h"

namespace luaspy {

// For one moment: what was read from /proc to explain one thread is reused for the next.
class Waits {
 public:
  // Both have to outlive it.
  Waits(const Process& process, const Memory& memory) : process_(process), memory_(memory), files_(process.pid()) {}

  // Explains a sleeping thread. If it is no longer sleeping in `state`, what would have to be read
  // from its memory is left out.
  Wait explain(const Thread& thread, const ThreadState& state);

 private:
  using Details = std::vector<std::string>;
  std::string about_file(Wait& wait, int fd, std::optional<OpenFiles::End> own);
  void explain_file(long call, const ThreadState& state, Wait& wait, Details& details);
  bool explain_files(long call, const ThreadState& state, Wait& wait, Details& details);
  bool explain_sleep(long call, const ThreadState& state, Wait& wait, Details& details);
  void explain_futex_wait(const ThreadState& state, Wait& wait, Details& details);
  bool explain_children(long call, const ThreadState& state, Wait& wait, Details& details);
  void watch_polled(Address array, std::uint64_t count, Wait& wait);
  void watch_selected(const ThreadState& state, Wait& wait);
  std::string thread_text(pid_t tid) const;
  std::optional<std::chrono::nanoseconds> time_at(Address timespec, bool in_microseconds = false) const;

  const Process& process_;
  const Memory& memory_;
  OpenFiles files_;
  std::size_t left_out_ = 0;  // of `watched`
};

// "1.5 ms", "20 s", "1 h 30 min".
std::string human_time(std::chrono::nanoseconds time);

// Rings of threads that wait for each other: each waits for a mutex that the next one holds, and
// the last for one of the first. `owners`: pairs of a waiting thread and the holder of its mutex.
std::vector<std::vector<pid_t>> deadlocks(std::span<const std::pair<pid_t, pid_t>> owners);

}  // namespace luaspy
