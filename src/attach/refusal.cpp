#include "attach/refusal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "attach/proc_files.h"
#include "attach/suspects.h"
#include "base/text.h"
#include "base/words.h"
#include "system/calls.h"
#include "system/security_modules.h"

namespace luaspy {
namespace {

constexpr std::uint64_t sys_ptrace = std::uint64_t{1} << 19;  // CAP_SYS_PTRACE, linux/capability.h

// What follows "Name:" in /proc/PID/status (proc(5)).
std::string_view field(std::string_view status, std::string_view name) {
  const std::size_t at = status.find(name);
  if (at == status.npos) return {};
  status.remove_prefix(at + name.size());
  return status.substr(0, status.find('\n'));
}

std::array<uid_t, 3> three_ids(std::string_view text) {
  std::array<uid_t, 3> ids{};
  for (uid_t& id : ids) id = number<uid_t>(next_word(text));
  return ids;
}

std::uint64_t mask(std::string_view text) { return number<std::uint64_t>("0x" + std::string(next_word(text))); }

Rights rights_in(std::string_view status, pid_t pid) {
  return {three_ids(field(status, "\nUid:")), three_ids(field(status, "\nGid:")), mask(field(status, "\nCapPrm:")),
          mask(field(status, "\nCapEff:")), system::read_link(fmt::format("/proc/{}/ns/user", pid)).value_or("")};
}

// user_namespaces(7): only the initial namespace maps every number to itself.
bool is_contained() {
  const std::string map = system::read_file("/proc/self/uid_map").value_or("");
  std::string_view rest = map;
  const auto inside = next_word(rest), outside = next_word(rest), length = next_word(rest);
  return !map.empty() && (inside != "0" || outside != "0" || length != "4294967295");
}

// fs/proc/base.c, task_dump_owner(): the files in /proc/PID of a process that is not dumpable
// belong to root, although the folder does not.
bool is_dumpable(pid_t pid, uid_t user) {
  struct stat status {};
  return user == 0 || ::stat(fmt::format("/proc/{}/status", pid).c_str(), &status) != 0 || status.st_uid == user;
}

TraceCase trace_case_of(pid_t pid) {
  TraceCase found;
  found.pid = pid;
  const std::string own = system::read_file("/proc/self/status").value_or("");
  found.luaspy = rights_in(own, ::getpid());
  std::string_view no_new = field(own, "\nNoNewPrivs:");
  found.filtered = is_filtered();
  found.no_new_privileges = next_word(no_new) == "1";
  found.contained = is_contained();
  const std::string scope = system::read_file("/proc/sys/kernel/yama/ptrace_scope").value_or("");
  found.yama_scope = number<int>(scope);
  struct stat folder {};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &folder) == 0) found.owner = folder.st_uid;
  const pid_t living = living_thread(pid);
  found.modules = system::security_modules();
  found.own_label = printable(system::security_label(::getpid()));
  found.label = printable(system::security_label(living));
  if (const std::optional<std::string> theirs = system::read_file(fmt::format("/proc/{}/status", living))) {
    found.target = rights_in(*theirs, living);
    found.dumpable = is_dumpable(living, found.target->users[1]);
  }
  return found;
}

// How to run luaspy so that it may do this.
std::string mend(const TraceCase& of) {
  if (of.luaspy.users[1] == 0 && !of.contained)
    return "luaspy is root without the capability CAP_SYS_PTRACE; if it runs in a container, start the container with "
           "--cap-add=SYS_PTRACE.";
  if (of.contained) return "run luaspy with sudo outside of its user namespace.";
  if (of.no_new_privileges)
    return "run luaspy as root, outside of the sandbox that set no_new_privs for it (sudo does not work inside).";
  return "run luaspy with sudo.";
}

std::string ids_text(const std::array<uid_t, 3>& ids) {
  return fmt::format("real {}, effective {}, saved {}", ids[0], ids[1], ids[2]);
}

// All that ptrace(2) names was asked.
std::string unexplained(const TraceCase& of) {
  std::string text = suspects(of.modules, Forbidden::tracing);
  if (!of.own_label.empty() && !of.label.empty())
    text += fmt::format(" (luaspy runs as {}, the process as {})", of.own_label, of.label);
  if (of.filtered)
    text +=
        "; or the seccomp filter that luaspy runs under forbids it: if that is a container's, start the container "
        "with --cap-add=SYS_PTRACE";
  return text + ".";
}

std::string capable_refused(const TraceCase& of) {
  if (of.contained && (of.target->user_namespace.empty() || of.target->user_namespace != of.luaspy.user_namespace))
    return "luaspy is in a user namespace of its own, and that process is not in it; " + mend(of);
  return unexplained(of);
}

}  // namespace

std::string why_refused(const TraceCase& of) {
  constexpr int only_related = 1, only_administrators = 2, nobody = 3;
  if (of.yama_scope == nobody) return "kernel.yama.ptrace_scope is 3, which forbids tracing until the next boot.";
  const uid_t user = of.luaspy.users[1], group = of.luaspy.groups[1];
  if (!of.target)
    return fmt::format("it belongs to user {}, luaspy runs as user {}, and /proc is mounted with hidepid; {}", of.owner,
                       user, mend(of));
  if ((of.luaspy.effective & sys_ptrace) != 0) return capable_refused(of);
  const Rights& theirs = *of.target;
  const auto all = [](const std::array<uid_t, 3>& ids, uid_t id) { return std::ranges::count(ids, id) == 3; };
  if (all(theirs.users, theirs.users[0]) && theirs.users[0] != user)
    return fmt::format("it belongs to user {}, luaspy runs as user {}; {}", theirs.users[0], user, mend(of));
  if (!all(theirs.users, user))
    return fmt::format("it has the rights of another user ({}; luaspy runs as {}); {}", ids_text(theirs.users), user,
                       mend(of));
  if (!all(theirs.groups, group))
    return fmt::format("it has the rights of another group ({}; luaspy runs as {}); {}", ids_text(theirs.groups), group,
                       mend(of));
  if (!of.dumpable)
    return "it is not dumpable (it changed its user, its program file is not readable, or it forbade dumps with "
           "prctl); " +
           mend(of);
  if (!theirs.user_namespace.empty() && theirs.user_namespace != of.luaspy.user_namespace)
    return "it lives in another user namespace; " + mend(of);
  if (const std::uint64_t lacked = theirs.permitted & ~of.luaspy.effective; lacked != 0)
    return fmt::format("it has capabilities that luaspy lacks ({:#x}, see capsh --decode); {}", lacked, mend(of));
  if (of.yama_scope == only_administrators) return "kernel.yama.ptrace_scope is 2 (administrators only); " + mend(of);
  if (of.yama_scope == only_related)
    return "kernel.yama.ptrace_scope is 1 (only a process's ancestors may trace it); " + mend(of) +
           " Or: sudo sysctl kernel.yama.ptrace_scope=0";
  if (user == 0) return "it is not dumpable, or " + unexplained(of) + " If it is not dumpable: " + mend(of);
  return unexplained(of);
}

bool is_ending(pid_t pid) {
  constexpr unsigned exiting = 0x4;  // PF_EXITING, include/linux/sched.h
  const std::string stat = system::read_file(fmt::format("/proc/{}/stat", living_thread(pid))).value_or("");
  const std::size_t end = stat.rfind(')');
  if (end == stat.npos) return system::find_process(pid).no_such_process();
  std::string_view rest = std::string_view(stat).substr(end + 1);
  const std::string_view state = next_word(rest);
  skip_words(rest, 9 - 3 - 1);  // proc(5): (3) state, (9) flags
  return state == "Z" || state == "X" || (number<unsigned>(next_word(rest)) & exiting) != 0;
}

Error explain_refusal(pid_t pid) {
  if (is_ending(pid)) return {Cause::no_such_process, fmt::format("Process {} has just ended.", pid)};
  return {Cause::permission,
          fmt::format("No permission to trace process {}: {}", pid, why_refused(trace_case_of(pid)))};
}

bool is_filtered() {
  const std::string own = system::read_file("/proc/self/status").value_or("");
  std::string_view filters = field(own, "\nSeccomp:");
  return next_word(filters) == "2";  // SECCOMP_MODE_FILTER
}

bool has_own_proc() { return system::read_link("/proc/self").value_or("") == std::to_string(::getpid()); }

Error explain_absence(pid_t pid) {
  if (!has_own_proc()) {
    if (::access("/proc/sys", F_OK) != 0)
      return {
          Cause::permission,
          "/proc is not mounted, and luaspy needs it to read anything about processes. Mount it: mount -t proc proc "
          "/proc"};
    return {Cause::permission,
            "/proc belongs to another pid namespace: its process numbers are not the ones that luaspy can trace. "
            "Mount the /proc of luaspy's own namespace (unshare --mount-proc, nsenter -m)."};
  }
  if (const system::Failure failure = system::find_process(pid); failure && !failure.not_permitted())
    return {Cause::no_such_process, fmt::format("There is no process {}.", pid)};
  return {
      Cause::permission,
      fmt::format("No permission to trace process {}: /proc is mounted with hidepid, which hides it from user {}; {}",
                  pid, ::geteuid(), mend(trace_case_of(pid)))};
}

Error explain_no_stop(pid_t pid) {
  const auto because = [&](const std::string& why) {
    return Error{Cause::permission, fmt::format("Running threads of process {} cannot be stopped: {}", pid, why)};
  };
  if (const system::Failure failure = system::may_stop())
    return because(fmt::format(
        "luaspy may not use ptrace ({}): the seccomp filter of a container or sandbox forbids it. Start the "
        "container with --cap-add=SYS_PTRACE or --security-opt seccomp=unconfined.",
        failure.text()));
  const pid_t living = living_thread(pid);
  const std::string status = system::read_file(fmt::format("/proc/{}/status", living)).value_or("");
  std::string_view tracer = field(status, "\nTracerPid:");
  if (const pid_t by = number<pid_t>(next_word(tracer)); by != 0 && by != ::getpid())
    return {Cause::already_traced, because(fmt::format("process {} is tracing it.", by)).text};
  if (is_ending(pid)) return {Cause::target_ended, fmt::format("Process {} has just ended.", pid)};
  if (!status.empty() && !system::open_file(fmt::format("/proc/{}/mem", living), O_RDONLY))
    return because(why_refused(trace_case_of(pid)));
  return because("another process was tracing them at the time (a debugger, strace).");
}

}  // namespace luaspy
