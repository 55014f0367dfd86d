#include "sampling/kernel_access.h"

#include <catch2/catch.hpp>

using namespace luaspy;

TEST_CASE("kernel access: a refusal says why, and what helps") {
  CHECK(
      why_no_kernel({.denied = true, .filtered = false, .paranoid = 2, .failure = "Permission denied"}) ==
      "frames of the kernel are not shown: kernel.perf_event_paranoid is 2, and luaspy has no CAP_PERFMON; run luaspy "
      "with sudo, or set it to 0: sysctl kernel.perf_event_paranoid=0");
  CHECK(why_no_kernel({.denied = true, .filtered = true, .paranoid = 0, .failure = "Operation not permitted"}) ==
        "frames of the kernel are not shown: a seccomp filter refuses perf_event_open(2), as it does in many "
        "containers (Operation not permitted)");
  CHECK(why_no_kernel({.denied = false, .filtered = false, .paranoid = 0, .failure = "Function not implemented"}) ==
        "frames of the kernel are not shown: perf_event_open(2): Function not implemented");
}
