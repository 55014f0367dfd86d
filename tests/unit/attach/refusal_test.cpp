// For all settings of a machine, why_refused() must name the cause that ptrace(2) documents.

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "attach/refusal.h"

namespace luaspy::refusal_test {
namespace {

constexpr std::uint64_t sys_ptrace = 1 << 19;

Rights user(uid_t id) { return {{id, id, id}, {id, id, id}, 0, 0, "user:[1]"}; }

// An ordinary user and a process of the same user.
TraceCase same_user(int scope) {
  TraceCase of;
  of.pid = 7;
  of.luaspy = user(1000);
  of.target = user(1000);
  of.owner = 1000;
  of.yama_scope = scope;
  return of;
}

bool says(const TraceCase& of, const std::string& text) {
  const std::string why = why_refused(of);
  INFO(why);
  CHECK(why.find(text) != why.npos);
  return why.find(text) != why.npos;
}

}  // namespace

TEST_CASE("kernel.yama.ptrace_scope", "[refusal]") {
  CHECK(says(same_user(0), "does not say which security modules are active"));
  CHECK(says(same_user(1), "ptrace_scope is 1"));
  CHECK(says(same_user(1), "sudo. Or: sudo sysctl kernel.yama.ptrace_scope=0"));
  CHECK(says(same_user(2), "ptrace_scope is 2 (administrators only); run luaspy with sudo."));
  CHECK(says(same_user(3), "ptrace_scope is 3, which forbids tracing until the next boot."));
  // 3 also applies to root; 1 and 2 do not.
  for (const int scope : {1, 2, 3}) {
    TraceCase of = same_user(scope);
    of.luaspy = user(0);
    of.luaspy.effective = sys_ptrace;
    CHECK(says(of, scope == 3 ? "ptrace_scope is 3" : "security modules"));
  }
  // An obstacle that exists without Yama is named first: changing the setting alone would not help.
  for (const int scope : {0, 1, 2}) {
    TraceCase of = same_user(scope);
    of.target = user(0);
    CHECK(says(of, "belongs to user 0, luaspy runs as user 1000; run luaspy with sudo."));
    of = same_user(scope);
    of.dumpable = false;
    CHECK(says(of, "not dumpable"));
  }
}

TEST_CASE("who may trace whom", "[refusal]") {
  TraceCase of = same_user(0);
  of.target->users = {1000, 0, 0};
  CHECK(says(of, "rights of another user (real 1000, effective 0, saved 0; luaspy runs as 1000)"));
  of = same_user(0);
  of.target->groups = {1000, 42, 42};
  CHECK(says(of, "rights of another group (real 1000, effective 42"));
  of = same_user(0);
  of.target->permitted = 0x3000;
  CHECK(says(of, "capabilities that luaspy lacks (0x3000"));
  of = same_user(0);
  of.target->user_namespace = "user:[2]";
  CHECK(says(of, "another user namespace"));
  of = same_user(0);
  of.target.reset();
  of.owner = 33;
  CHECK(says(of, "belongs to user 33, luaspy runs as user 1000, and /proc is mounted with hidepid"));
}

TEST_CASE("what mends it depends on who luaspy is", "[refusal]") {
  TraceCase of = same_user(0);
  of.target = user(33);
  CHECK(says(of, "; run luaspy with sudo."));
  of.no_new_privileges = true;
  CHECK(says(of, "sudo does not work inside"));
  of.luaspy = user(0);
  CHECK(says(of, "--cap-add=SYS_PTRACE"));
  of.contained = true;
  CHECK(says(of, "outside of its user namespace"));
  of.luaspy.effective = sys_ptrace;
  of.target->user_namespace.clear();
  CHECK(says(of, "luaspy is in a user namespace of its own, and that process is not in it"));
  of.contained = false;
  of.filtered = true;
  CHECK(says(of, "or the seccomp filter that luaspy runs under"));
}

TEST_CASE("a security module is blamed only if it is active", "[refusal]") {
  TraceCase root = same_user(0);
  root.luaspy = user(0);
  root.luaspy.effective = sys_ptrace;
  CHECK(why_refused(root) ==
        "the kernel gives no reason and does not say which security modules are active; one of them may forbid it.");
  root.modules = {"lockdown", "capability", "yama", "tomoyo"};  // none of them forbids root to trace
  CHECK(why_refused(root) == "the kernel gives no reason, and no security module that could forbid it is active.");
  root.modules->push_back("apparmor");
  root.own_label = "docker-default (enforce)", root.label = "unconfined";
  CHECK(why_refused(root) ==
        "AppArmor forbids it (luaspy runs as docker-default (enforce), the process as unconfined).");
  root.own_label.clear();
  root.modules = {"landlock", "bpf"};
  CHECK(why_refused(root) ==
        "Landlock (a sandbox that luaspy runs in), or a BPF program that guards this machine forbids it.");
  for (const bool capable : {false, true}) {
    TraceCase of = capable ? root : same_user(0);
    of.modules = std::vector<std::string>{"capability"};
    CHECK(says(of, "no security module that could forbid it is active"));
    CHECK(why_refused(of).find("SELinux") == std::string::npos);
  }
}

TEST_CASE("what has ended, or is about to, is not refused", "[refusal]") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);  // it stays a zombie
  CHECK(is_ending(child));
  CHECK(explain_refusal(child).cause == Cause::no_such_process);
  ::waitpid(child, nullptr, 0);
  CHECK(is_ending(child));
  CHECK_FALSE(is_ending(::getpid()));
}

}  // namespace luaspy::refusal_test
