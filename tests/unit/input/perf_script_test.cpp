// The text of perf script.

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "support/foreign_files.h"

namespace luaspy::perf_script_test {
namespace {

std::string perf_text() {
  std::ifstream file(std::string(LUASPY_TESTS) + "/unit/input/perf_script.txt");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

// perf 6.1, `perf record -g -F 199 -e cpu-clock`, of a program whose name has a space.
TEST_CASE("the text of perf script is a profile", "[unit]") {
  const Profile profile = foreign::profile_of(perf_text());
  CHECK(profile.about.kind == "the text of perf script (cpu-clock)");
  CHECK(profile.about.torn == "");
  CHECK(profile.about.unit == Unit::nanoseconds);
  CHECK(profile.about.timed);
  CHECK(profile.about.command == "two words");
  CHECK(profile.samples() == 65);
  CHECK(profile.weight() == 65 * std::int64_t{5'025'125});
  REQUIRE(profile.threads().size() == 1);
  CHECK(profile.threads()[0].tid == 12908);
  const std::string stacks = foreign::written("folded", profile);
  INFO(stacks);
  CHECK(stacks.find("main (two words);work (two words);spin (two words) ") != std::string::npos);
  CHECK(stacks.find("__libc_start_call_main") == std::string::npos);  // shown with --mode all
  CHECK(stacks.find(" [kernel]") != std::string::npos);
}

TEST_CASE("other lines of perf script", "[unit]") {
  // Without stacks, with threads and CPUs, with an event that counts and with modifiers; an event beside it.
  const Profile profile = foreign::profile_of(
      "# captured on: today\n"
      "#\n"
      "       two words   100/101 [003] 65672.601185:   10101010 cycles:Pu:      5592f835718a spin+0x21 (/tmp/two "
      "words)\n"
      "       two words   100/101 [003] 65672.601385:          1 cache-misses:      5592f835718a spin+0x21 (/tmp/x)\n"
      "lua  7 [000] 65672.701185: cycles:Pu: \n"
      "\tffffffff81631baa kmem_cache_free+0x5a ([kernel.kallsyms])\n"
      "\tffffffffc0631baa ext4_read ([ext4])\n"
      "\t    7ffd1000 [unknown] ([vdso])\n"
      "\t    55d0c0ffee operator new(unsigned long)+0x10 (/usr/lib/libstdc++.so.6)\n\n");
  CHECK(profile.about.kind == "the text of perf script (cycles)");
  CHECK(profile.about.unit == Unit::samples);
  CHECK(profile.about.torn == "");
  CHECK(profile.about.duration_ns == 100'000'000);
  CHECK(foreign::written("folded", profile, {.threads = true}) ==
        "thread lua (7);operator new(unsigned long) (libstdc++.so.6);[unknown] ([vdso]);ext4_read [ext4];"
        "kmem_cache_free [kernel] 1\n"
        "thread two words (101);spin (two words) 1\n");
  const std::string whole = perf_text();
  CHECK(foreign::profile_of(whole + "this is no perf\n").about.torn ==
        "line 439: this is neither a sample of perf script nor a frame of one");
  CHECK(foreign::profile_of("a 1 2.5: 3 cpu-clock: \n\tnothing here\n").about.torn ==
        "line 2: this is no frame of perf script");
}

}  // namespace luaspy::perf_script_test
