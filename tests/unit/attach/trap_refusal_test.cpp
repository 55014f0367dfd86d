// For all settings of a machine, explain_no_trap() must name the cause and what helps.

#include "attach/trap_refusal.h"

#include <catch2/catch.hpp>
#include <cerrno>

namespace luaspy::trap_refusal_test {
namespace {

void says(const TrapCase& of, Cause cause, const std::string& text) {
  const Error error = explain_no_trap(of);
  CHECK(error.cause == cause);
  CHECK_THAT(error.text, Catch::Contains(text));
  CHECK_THAT(error.text, Catch::EndsWith("luaspy heap --every needs none."));
}

}  // namespace

TEST_CASE("kernel.perf_event_paranoid is named only if it forbids breakpoints", "[trap_refusal]") {
  for (const int level : {3, 4}) {
    const std::string is = "kernel.perf_event_paranoid is " + std::to_string(level);
    says({{EACCES}, level, false, false}, Cause::permission,
         is + ". Run luaspy with sudo. Or: sudo sysctl kernel.perf_event_paranoid=2");
    says({{EACCES}, level, true, false}, Cause::permission, is);
    says({{EACCES}, level, true, true}, Cause::permission, "root without the capability CAP_PERFMON");
    says({{EPERM}, level, true, false}, Cause::permission, "seccomp filter of a container or sandbox");
  }
  says({{EACCES}, 2, false, false}, Cause::permission,
       "is 2, which allows them; the kernel gives no reason and does not say which security modules are active");
  says({{EACCES}, 2, false, false, {{"apparmor", "landlock"}}}, Cause::permission,
       "no security module that could forbid it is active");
  says({{EACCES}, 2, false, false, {{"apparmor", "selinux"}}}, Cause::permission,
       "which allows them; SELinux forbids it.");
  says({{EACCES}, 2, true, false}, Cause::permission, "seccomp filter");
}

TEST_CASE("no breakpoints for other reasons", "[trap_refusal]") {
  says({{EPERM}, 2, true, true}, Cause::permission, "--cap-add=PERFMON or --security-opt seccomp=unconfined");
  says({{ENOSYS}, 2, true, false}, Cause::permission, "seccomp filter");
  says({{ENOSYS}, 2, false, false}, Cause::unsupported, "built without");
  says({{ENOSPC}, 2, false, false}, Cause::unsupported, "All debug registers of the thread are taken");
  says({{EMFILE}, 2, false, false}, Cause::unsupported, "ulimit -n");
  says({{ENOENT}, 2, false, false}, Cause::unsupported, "some virtual machines");
  CHECK(explain_no_trap({{ESRCH}, 2, false, false}).cause == Cause::target_ended);
}

}  // namespace luaspy::trap_refusal_test
