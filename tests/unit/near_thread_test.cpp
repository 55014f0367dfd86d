#include <sched.h>

#include <catch2/catch.hpp>

#include "attach/near_thread.h"

namespace luaspy {

TEST_CASE("a job runs on the CPU that it was asked for, and has ended when run() returns", "[near_thread]") {
  cpu_set_t usable;
  REQUIRE(sched_getaffinity(0, sizeof usable, &usable) == 0);
  NearThread near;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    int ran_on = -1;
    near.run(cpu, [&] { ran_on = sched_getcpu(); });
    CHECK(ran_on == cpu);
  }
}

TEST_CASE("a CPU that luaspy may not use, or that is not known, is no reason not to run", "[near_thread]") {
  NearThread near;
  for (const int cpu : {-1, CPU_SETSIZE, CPU_SETSIZE - 1}) {
    bool ran = false;
    near.run(cpu, [&] { ran = true; });
    CHECK(ran);
  }
}

TEST_CASE("the caller leaves a CPU to the target, if there is another one", "[near_thread]") {
  cpu_set_t before, after;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  {
    NearThread near;
    const int cpu = sched_getcpu();
    near.keep_off(cpu);
    REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
    CHECK(CPU_COUNT(&after) == std::max(CPU_COUNT(&before) - 1, 1));
    if (CPU_COUNT(&before) > 1) CHECK(sched_getcpu() != cpu);
  }
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
}

}  // namespace luaspy
