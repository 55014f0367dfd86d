#include "attach/cpu_wait.h"

#include <catch2/catch.hpp>

namespace luaspy::cpu_wait_test {
namespace {

constexpr std::int64_t ms = 1'000'000;

// A reading of a running thread: `at` is the time since the clock's start, `on_cpu` its time on a
// CPU; ms.
CpuReading reading(int at, int on_cpu, int waited = 0, std::uint64_t runs = 100) {
  CpuReading result;
  result.at = system::Clock::time_point(std::chrono::milliseconds(at));
  result.schedule = {on_cpu * ms, waited * ms, runs};
  result.letter = 'R';
  result.sleeps = 5;
  return result;
}

std::string text_of(const CpuReading& from, const CpuReading& to) {
  const std::optional<CpuWait> wait = cpu_wait(from, to, false);
  return wait ? cpu_wait_text(*wait) : "";
}

}  // namespace

TEST_CASE("a thread that wants to run and has no CPU", "[unit]") {
  const CpuReading begin = reading(500, 7'000);
  CHECK(text_of(begin, reading(1'500, 7'260)) == "wants to run; had a CPU 26 % of the last second");
  CHECK(text_of(begin, reading(1'800, 7'000)) == "wants to run; had a CPU 0 % of the last 1.3 s");
  CHECK(text_of(begin, reading(1'500, 7'899)) == "wants to run; had a CPU 90 % of the last second");
  CHECK(text_of(begin, reading(1'500, 7'900)).empty());
  CHECK(text_of(begin, reading(1'500, 8'010)).empty());
  CHECK(text_of(begin, reading(500, 7'000)).empty());
  CHECK(text_of(begin, reading(1'500, 6'000)) == "wants to run; had a CPU 0 % of the last second");
}

TEST_CASE("a thread that sleeps does not wait for a CPU", "[unit]") {
  const CpuReading begin = reading(500, 7'000, 100);
  CpuReading end = reading(1'500, 7'260, 100);
  for (const char letter : {'S', 'D', 'T', 't', 'Z', '?'}) {
    end.letter = letter;
    CHECK(text_of(begin, end).empty());
  }
  end.letter = 'R', end.sleeps = 6;
  CHECK(text_of(begin, end).empty());
  end.schedule.waited_for_cpu = 199 * ms;
  CHECK(text_of(begin, end).empty());
  end.schedule.waited_for_cpu = 400 * ms;
  CHECK(text_of(begin, end) == "wants to run; had a CPU 26 % of the last second, waited for one 30 %");
  end.schedule.waited_for_cpu = 4'000 * ms;
  CHECK(text_of(begin, end) == "wants to run; had a CPU 26 % of the last second, waited for one 74 %");
}

TEST_CASE("where the kernel does not tell what a thread ran", "[unit]") {
  CHECK(text_of(reading(500, 0, 0, 0), reading(1'500, 0, 0, 0)).empty());
  CHECK(text_of(reading(500, 7'000), reading(1'500, 0, 0, 0)).empty());
  CHECK(!cpu_wait(reading(500, 7'000), reading(1'500, 7'000), true));
  CHECK(cpu_wait(reading(500, 7'000), reading(1'500, 7'000, 0, 101), true));
}

TEST_CASE("a thread whose cgroup was throttled", "[unit]") {
  CpuReading begin = reading(500, 7'000), end = reading(1'500, 7'260);
  begin.throttled = {3'000 * ms, 10'000 * ms}, end.throttled = {3'000 * ms, 10'680 * ms};
  CHECK(text_of(begin, end) == "wants to run; had a CPU 26 % of the last second; throttled by its cgroup for 0.7 s");
  end.throttled = {7'000 * ms, 10'000 * ms};  // on several CPUs
  CHECK(cpu_wait(begin, end, false)->throttled == 740 * ms);
  end.throttled = {3'049 * ms, 10'000 * ms};
  CHECK(text_of(begin, end) == "wants to run; had a CPU 26 % of the last second");
  end.throttled = {0, -1};
  CHECK(text_of(begin, end) == "wants to run; had a CPU 26 % of the last second");
  begin.throttled = {-1}, end.throttled = {500 * ms};
  CHECK(text_of(begin, end) == "wants to run; had a CPU 26 % of the last second");
}

TEST_CASE("where a cgroup says how long it was throttled", "[unit]") {
  using Files = std::vector<std::string>;
  const char* const both =
      "23 1 0:20 / / rw - ext4 /dev/vda rw\n"
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
      "33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset,cpu\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  CHECK(cpu_stat_files("3:cpuset,cpu:/a/b\n2:cpuacct:/c\n0::/d\n", both) ==
        Files{"/sys/fs/cgroup/cpu,cpuset/a/b/cpu.stat", "/sys/fs/cgroup/cpu,cpuset/a/cpu.stat",
              "/sys/fs/cgroup/cpu,cpuset/cpu.stat"});
  CHECK(cpu_stat_files("3:cpu:/\n0::/d\n", both) == Files{"/sys/fs/cgroup/cpu,cpuset/cpu.stat"});
  CHECK(cpu_stat_files("2:cpuacct:/c\n0::/d\n", both) ==
        Files{"/sys/fs/cgroup/unified/d/cpu.stat", "/sys/fs/cgroup/unified/cpu.stat"});
  const char* const part = "41 31 0:38 /pod /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  CHECK(cpu_stat_files("0::/pod/one\n", part) == Files{"/sys/fs/cgroup/one/cpu.stat", "/sys/fs/cgroup/cpu.stat"});
  CHECK(cpu_stat_files("0::/pod\n", part) == Files{"/sys/fs/cgroup/cpu.stat"});
  for (const char* const unseen :
       {"0::/pods\n", "0::/\n", "0::/../other\n", "0::/pod/..\n", "0::\n", "3:cpu:/pod\n", "0", ""})
    CHECK(cpu_stat_files(unseen, part).empty());
  for (const char* const mounts :
       {"", "\n", "41 31 0:38 / /x rw", "41 31 0:38 / /x rw - ", "41 31 0:38 / /x rw - cgroup cgroup rw,cpu\n"}) {
    CHECK(cpu_stat_files("0::/a\n", mounts).empty());
  }
  std::string deep = "0::";
  for (int i = 0; i < 1'000; ++i) deep += "/a";
  CHECK(cpu_stat_files(deep, both).size() == 64);

  CHECK(throttled_in("nr_periods 10\nnr_throttled 7\nthrottled_time 690000000\n") == 690 * ms);
  CHECK(throttled_in("usage_usec 5\nnr_throttled 7\nthrottled_usec 690000\n") == 690 * ms);
  for (const char* const text :
       {"", "usage_usec 5\n", "throttled_usec 18446744073709551615\n", "throttled_time 9223372036854775808"})
    CHECK(throttled_in(text) == -1);
}

}  // namespace luaspy::cpu_wait_test
