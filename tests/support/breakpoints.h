#pragma once
// What luaspy alloc needs of the machine.

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/file_descriptor.h"

namespace luaspy::live {

// Why luaspy alloc cannot be tried, and what helps.
inline constexpr const char* no_breakpoints =
    "no process may have a hardware breakpoint here: the virtual machine has no debug registers, or perf events are "
    "not "
    "allowed (kernel.perf_event_paranoid; in a container: --cap-add PERFMON)";

// Whether this machine lets a process trap itself.
inline bool has_breakpoints() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = HW_BREAKPOINT_X;
  attributes.bp_addr = reinterpret_cast<std::uintptr_t>(&has_breakpoints);
  attributes.bp_len = sizeof(long);
  attributes.exclude_kernel = 1;
  return static_cast<bool>(
      FileDescriptor(static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC))));
}

}  // namespace luaspy::live
