#pragma once
// Threads that stand still for another reason than a call that waits: stopped by a signal, held by
// a tracer, or frozen with their cgroup. Only /proc and the cgroup are read; the target is not
// touched.

#include <sys/types.h>

#include <string>
#include <string_view>

namespace luaspy {

class Thread;

struct Halt {
  enum class Kind { none, stopped, traced, frozen } kind = Kind::none;
  int signal = 0;    // stopped: by which signal; 0 if the kernel does not report it
  pid_t tracer = 0;  // traced: by whom
  std::string tracer_name;
  bool operator==(const Halt&) const = default;
};

constexpr std::string_view name(Halt::Kind kind) {
  switch (kind) {
    case Halt::Kind::none:
      break;
    case Halt::Kind::stopped:
      return "stopped";
    case Halt::Kind::traced:
      return "traced";
    case Halt::Kind::frozen:
      return "frozen";
  }
  return "";
}

// What /proc reports about a thread.
struct HaltFacts {
  char state = '?';        // as Thread::state_letter()
  std::string_view wchan;  // where it sleeps in the kernel
  int stop_signal = 0;     // what stopped the process
  pid_t tracer = 0;
  bool in_frozen_cgroup = false;
};
// Without the tracer's name.
Halt halt_of(const HaltFacts& facts);

Halt halt_of(pid_t pid, const Thread& thread);

// "stopped by a signal (SIGSTOP; continue it with kill -CONT 42)"; empty for none.
std::string halt_text(const Halt& halt, pid_t pid);

// Why no thread of a process can run: halt_text() of its first halted thread. Empty if some thread
// can run, or merely waits for something.
std::string why_still(pid_t pid);

}  // namespace luaspy
