// What machine code shows of frames without call frame information.

#include "arch/x86_64/prologue.h"

#include <catch2/catch.hpp>

namespace luaspy::x86_64 {
namespace {

bool ends(const std::vector<unsigned>& code) {
  std::vector<std::byte> bytes;
  for (const unsigned byte : code) bytes.push_back(static_cast<std::byte>(byte));
  return ends_here(bytes);
}

}  // namespace

TEST_CASE("code that nothing returns to", "[unit]") {
  CHECK(ends({0x48, 0x89, 0xc7, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05}));  // glibc's clone3: mov %rax,%rdi; mov $60,%eax;
                                                                     // syscall
  CHECK(ends({0x48, 0x89, 0xc7, 0x48, 0xc7, 0xc0, 0x3c, 0, 0, 0, 0x0f, 0x05}));  // mov $60,%rax
  CHECK(ends({0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05, 0xf4}));  // musl's clone: mov %eax,%edi; xor %eax,%eax;
                                                                        // mov $60,%al; syscall
  CHECK(ends({0x48, 0x31, 0xff, 0xe8, 1, 2, 3, 4, 0xf4}));              // make_fcontext: xor %rdi,%rdi; call _exit; hlt
  CHECK(ends({0xf4}));
  CHECK(!ends({0x48, 0x89, 0xc7, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05}));  // exit_group, which any function may call
  CHECK(!ends({0xb8, 0x3c, 0, 0, 0, 0xe8, 1, 2, 3, 4, 0x0f, 0x05}));  // a call in between
  CHECK(!ends({0xb8, 0x3c, 0, 0, 0, 0xc3, 0x0f, 0x05}));              // it returns
  CHECK(!ends({0x74, 0x02, 0xf4}));                                   // it branches
  CHECK(!ends({0xe8, 1, 2, 3, 4, 0xe8, 1, 2, 3, 4, 0xf4}));
  CHECK(!ends({0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xf4}));  // too far away
  CHECK(!ends({0xb8, 0x3c}));
  CHECK(!ends({}));
}

}  // namespace luaspy::x86_64
