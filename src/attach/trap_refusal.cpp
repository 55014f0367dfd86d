#include "attach/trap_refusal.h"

#include <fmt/format.h>
#include <unistd.h>

#include "attach/refusal.h"
#include "attach/suspects.h"
#include "base/words.h"
#include "system/security_modules.h"

namespace luaspy {
namespace {

// Debian's and Ubuntu's kernels know 3 and 4, which refuse all perf events. Others refuse only what
// luaspy does not ask for.
constexpr int most_paranoid = 2;

std::string forbidden(const TrapCase& of) {
  const std::string how = of.failure.text();
  if (of.failure.access_denied() && of.paranoid > most_paranoid) {
    const std::string mend = of.root ? "luaspy is root without the capability CAP_PERFMON; if it runs in a container, "
                                       "start the container with --cap-add=PERFMON."
                                     : "Run luaspy with sudo.";
    return fmt::format(
        "The kernel allows luaspy no breakpoints: kernel.perf_event_paranoid is {}. {} Or: sudo sysctl "
        "kernel.perf_event_paranoid={}",
        of.paranoid, mend, most_paranoid);
  }
  if (of.filtered)
    return fmt::format(
        "luaspy may not use breakpoints (perf_event_open: {}): the seccomp filter of a container or sandbox forbids "
        "it. Start the container with --cap-add=PERFMON or --security-opt seccomp=unconfined, or run luaspy outside "
        "of it.",
        how);
  return fmt::format(
      "luaspy may not use breakpoints (perf_event_open: {}): kernel.perf_event_paranoid is {}, which allows them; {}.",
      how, of.paranoid, suspects(of.modules, Forbidden::perf_events));
}

}  // namespace

Error explain_no_trap(const TrapCase& of) {
  constexpr std::string_view instead = " luaspy heap --every needs none.";
  const system::Failure& failure = of.failure;
  const auto error = [&](Cause cause, const std::string& why) { return Error{cause, why + std::string(instead)}; };
  if (failure.no_such_process()) return {Cause::target_ended, "The thread has ended."};
  if (failure.not_permitted() || (failure.not_implemented() && of.filtered))
    return error(Cause::permission, forbidden(of));
  if (failure.not_implemented())
    return error(Cause::unsupported, "This kernel was built without breakpoints (CONFIG_PERF_EVENTS).");
  if (failure.no_space())
    return error(Cause::unsupported,
                 "All debug registers of the thread are taken: the program itself, a debugger (hbreak, watch) or perf "
                 "(-e mem:) uses them for breakpoints. Try again without these.");
  if (failure.too_many_files())
    return error(Cause::unsupported, "luaspy may not open as many files as it needs (ulimit -n).");
  return error(Cause::unsupported, fmt::format("This machine has no breakpoints (perf_event_open: {}), as some virtual "
                                               "machines.",
                                               failure.text()));
}

Error explain_no_trap(const system::Failure& failure) {
  const std::string paranoid = system::read_file("/proc/sys/kernel/perf_event_paranoid").value_or("");
  return explain_no_trap({failure, number<int>(paranoid), is_filtered(), ::geteuid() == 0, system::security_modules()});
}

}  // namespace luaspy
