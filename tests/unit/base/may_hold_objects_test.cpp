#include <catch2/catch.hpp>

#include "base/address_space.h"

namespace luaspy::may_hold_objects_test {
namespace {

bool may_hold_objects(const std::string& rest) {
  const AddressSpace space = AddressSpace::parse("7f0000000000-7f0000100000 " + rest + "\n");
  REQUIRE(space.mappings().size() == 1);
  return space.mappings().front().may_hold_objects();
}

}  // namespace

TEST_CASE("objects may be in memory of the process and in shared memory, not in a device's or the kernel's") {
  for (const char* const rest :
       {"rw-p 00000000 00:00 0", "rw-p 00000000 00:00 0 [heap]", "rwxp 00000000 00:00 0",
        "rw-p 00002000 fe:01 1234 /usr/bin/lua5.4", "rw-s 00000000 00:01 12 /memfd:luas (deleted)",
        "rw-s 00000000 00:01 12 /dev/zero (deleted)", "rw-s 00000000 00:19 12 /dev/shm/arena",
        "rw-s 00000000 00:01 12 /SYSV00000000 (deleted)", "rw-s 00000000 fe:01 12 /var/lib/arena (deleted)",
        "rw-s 00000000 fe:01 12 /arena", "rw-s 00000000 00:01 12 [anon_shmem:arena]",
        "rw-s 00000000 00:0f 12 /dev/hugepages/arena"}) {
    INFO(rest);
    CHECK(may_hold_objects(rest));
  }
  for (const char* const rest : {"r--p 00000000 00:00 0", "---p 00000000 00:00 0", "-w-p 00000000 00:00 0",
                                 "r--s 00000000 fe:01 12 /var/lib/arena", "rw-s 00000000 00:06 12 /dev/dri/renderD128",
                                 "rw-s 00000000 00:06 12 /dev/mem", "rw-s 00000000 00:0e 12 anon_inode:[perf_event]",
                                 "rw-s 00000000 00:0f 12 /[aio] (deleted)", "rw-s 00000000 00:01 12 /i915 (deleted)",
                                 "rw-s 00000000 00:0d 12 /dmabuf:", "rw-s 00000000 00:00 0"}) {
    INFO(rest);
    CHECK_FALSE(may_hold_objects(rest));
  }
}

}  // namespace luaspy::may_hold_objects_test
