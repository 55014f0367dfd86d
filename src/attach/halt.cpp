#include "attach/halt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "attach/process.h"
#include "base/text.h"
#include "base/words.h"
#include "system/calls.h"

namespace luaspy {
namespace {

// proc(5), /proc/PID/stat: (52) exit_code; for a stopped process it is the signal that stopped it
// (fs/proc/array.c, do_task_stat()). Field 3 is the first after the name.
int stop_signal_of(pid_t tid) {
  const std::string text = system::read_file(fmt::format("/proc/{}/stat", tid)).value_or("");
  const std::size_t end = text.rfind(')');
  if (end == text.npos) return 0;
  std::string_view rest = std::string_view(text).substr(end + 1);
  skip_words(rest, 52 - 3);
  return number<int>(next_word(rest));
}

pid_t tracer_of(pid_t tid) {
  constexpr std::string_view field = "\nTracerPid:";
  const std::string status = system::read_file(fmt::format("/proc/{}/status", tid)).value_or("");
  const std::size_t at = status.find(field);
  if (at == status.npos) return 0;
  std::string_view rest = std::string_view(status).substr(at + field.size());
  return number<pid_t>(next_word(rest));
}

// cgroups(7): lines "6:freezer:/path". The freezer is looked for where systemd and everybody else
// mount it, and nowhere else.
bool in_frozen_cgroup(pid_t tid) {
  const std::string cgroups = system::read_file(fmt::format("/proc/{}/cgroup", tid)).value_or("");
  std::string_view rest = cgroups;
  for (std::string_view line = next_line(rest); !line.empty(); line = next_line(rest)) {
    constexpr std::string_view controller = ":freezer:";
    const std::size_t at = line.find(controller);
    if (at == line.npos) continue;
    const std::string path = "/sys/fs/cgroup/freezer" + std::string(line.substr(at + controller.size())) +
                             "/freezer.state";
    return system::read_file(path).value_or("").starts_with("FROZEN");
  }
  return false;
}

// signal(7): the signals that stop a process.
std::string_view signal_text(int signal) {
  switch (signal) {
    case SIGSTOP:
      return "SIGSTOP; ";
    case SIGTSTP:
      return "SIGTSTP; ";
    case SIGTTIN:
      return "SIGTTIN: it reads from a terminal in the background; ";
    case SIGTTOU:
      return "SIGTTOU: it writes to a terminal in the background; ";
    default:
      return "";
  }
}

}  // namespace

// A frozen thread in a version 1 cgroup sleeps where the freezer puts it, or stays in a freezable
// wait (TASK_FREEZABLE, Linux 6.1), which is uninterruptible from then on. One in a version 2
// cgroup waits on its way back to user space in do_freezer_trap(). Compilers inline that into its
// only caller, get_signal() (kernel/signal.c), where nothing else sleeps.
Halt halt_of(const HaltFacts& facts) {
  if (facts.state == 't' || (facts.state == 'T' && facts.tracer != 0)) return {Halt::Kind::traced, 0, facts.tracer, {}};
  if (facts.state == 'T') return {Halt::Kind::stopped, facts.stop_signal, 0, {}};
  if (facts.wchan == "__refrigerator" || (facts.state == 'D' && facts.in_frozen_cgroup))
    return {Halt::Kind::frozen, 0, 0, {}};
  if (facts.state == 'S' && (facts.wchan == "do_freezer_trap" || facts.wchan == "get_signal"))
    return {Halt::Kind::frozen, 0, 0, {}};
  return {};
}

Halt halt_of(pid_t pid, const Thread& thread) {
  HaltFacts facts;
  facts.state = thread.state_letter();
  if (facts.state != 'T' && facts.state != 't' && facts.state != 'D' && facts.state != 'S') return {};
  const pid_t tid = thread.tid();
  const std::string wchan = system::read_file(fmt::format("/proc/{}/task/{}/wchan", pid, tid)).value_or("");
  facts.wchan = wchan;
  if (facts.state == 'T' || facts.state == 't') facts.tracer = tracer_of(tid);
  if (facts.state == 'T') facts.stop_signal = stop_signal_of(tid);
  if (facts.state == 'D') facts.in_frozen_cgroup = in_frozen_cgroup(tid);
  Halt halt = halt_of(facts);
  if (halt.tracer == ::getpid()) return {};
  if (halt.tracer != 0) {
    const std::string comm = system::read_file(fmt::format("/proc/{}/comm", halt.tracer)).value_or("");
    std::string_view rest = comm;
    halt.tracer_name = printable(next_line(rest));
  }
  return halt;
}

std::string halt_text(const Halt& halt, pid_t pid) {
  switch (halt.kind) {
    case Halt::Kind::none:
      break;
    case Halt::Kind::stopped:
      return fmt::format("stopped by a signal ({}continue it with kill -CONT {})", signal_text(halt.signal), pid);
    case Halt::Kind::traced:
      return halt.tracer == 0 ? "held by its tracer" : fmt::format("traced by {} ({})", halt.tracer, halt.tracer_name);
    case Halt::Kind::frozen:
      return "frozen by its cgroup freezer";
  }
  return "";
}

std::string why_still(pid_t pid) {
  Halt first;
  for (const pid_t tid : system::numeric_entries(fmt::format("/proc/{}/task", pid))) {
    const Thread thread(pid, tid);
    const char state = thread.state_letter();
    if (state == '?' || state == 'Z' || state == 'X') continue;  // it has ended
    Halt halt = halt_of(pid, thread);
    if (halt.kind == Halt::Kind::none) return {};
    if (first.kind == Halt::Kind::none) first = std::move(halt);
  }
  return halt_text(first, pid);
}

}  // namespace luaspy
