#include <sched.h>
#include <catch2/catch.hpp>

#include <thread>

#include "attach/own_cpu.h"

namespace luaspy::own_cpu_test {

TEST_CASE("a thread stays on the CPUs that it is given, and others are not concerned", "[own_cpu]") {
  const std::vector<int> before = usable_cpus();
  REQUIRE(!before.empty());
  std::thread([&] {
    CHECK(stay_on({before.back()}));
    CHECK(usable_cpus() == std::vector{before.back()});
    CHECK(sched_getcpu() == before.back());
  }).join();
  CHECK(usable_cpus() == before);
}

TEST_CASE("a thread cannot stay on no CPU", "[own_cpu]") {
  const std::vector<int> before = usable_cpus();
  CHECK(!stay_on({}));
  CHECK(usable_cpus() == before);
}

TEST_CASE("a thread that starves on a CPU may use the others, or none is left out", "[own_cpu]") {
  CHECK(others_than(1, {0, 1, 3}) == std::vector{0, 3});
  CHECK(others_than(2, {0, 1}) == std::vector{0, 1});
  CHECK(others_than(1, {1}) == std::vector{1});
}

TEST_CASE("a thread that is to come at once is a real-time thread, or says that it is not", "[own_cpu]") {
  std::thread([] {
    const bool at_once = come_at_once();
    CHECK(at_once == (sched_getscheduler(0) == (SCHED_FIFO | SCHED_RESET_ON_FORK)));
  }).join();
}

}  // namespace luaspy::own_cpu_test
