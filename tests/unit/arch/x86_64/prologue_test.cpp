// What machine code shows of frames without call frame information.

#include "arch/x86_64/prologue.h"

#include <catch2/catch.hpp>

namespace luaspy::x86_64 {
namespace {

std::vector<std::byte> bytes_of(const std::vector<unsigned>& code) {
  std::vector<std::byte> bytes;
  for (const unsigned byte : code) bytes.push_back(static_cast<std::byte>(byte));
  return bytes;
}

bool ends(const std::vector<unsigned>& code) { return ends_here(bytes_of(code)); }

std::optional<std::int64_t> depth(const std::vector<unsigned>& code, std::size_t after_call) {
  return depth_of_straight_code(bytes_of(code), after_call);
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

TEST_CASE("straight code up to a call", "[unit]") {
  CHECK(depth({0x53, 0xe8, 0, 0, 0, 0}, 6) == 8);              // push %rbx; call
  CHECK(depth({0xc3, 0x53, 0xe8, 0, 0, 0, 0, 0xf4}, 7) == 8);  // ret; push %rbx; call; hlt
  CHECK(!depth({0x74, 0x00, 0xe8, 0, 0, 0, 0}, 7));            // je; call
  CHECK(!depth({0xe8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0}, 10));     // another call before
  // A loop that is entered in its middle, as in glibc's _IO_new_file_write: jmp 1f; 2: call; test %rax,%rax;
  // 1: je 2b
  const std::vector<unsigned> loop = {0x53, 0xeb, 0x08, 0xe8, 0, 0, 0, 0, 0x48, 0x85, 0xc0, 0x74, 0xf6};
  CHECK(!depth(loop, 8));
  CHECK(depth({loop.begin(), loop.end() - 2}, 8) == 0);              // without the branch back
  CHECK(depth({0x53, 0xe8, 0, 0, 0, 0, 0xc5, 0x74, 0xf7}, 6) == 8);  // data after the call
}

}  // namespace luaspy::x86_64
