// What short functions read, by their code.

#include "arch/x86_64/loads.h"

#include <catch2/catch.hpp>

#include "unit/unwind/file_with_frames.h"

namespace luaspy::x86_64 {
namespace {

constexpr Address function = 0x5000, request = OneStack::start, other = request + 0x20;

// Of six words from `request` on.
std::vector<Load> loads(const std::vector<std::uint8_t>& code, std::vector<Address> words = {}) {
  words.resize(6);
  return loads_of(std::as_bytes(std::span(code)), function, request, OneStack(words));
}

}  // namespace

TEST_CASE("what a function that only reads has read", "[unit]") {
  // endbr64; mov 0x1ff5(%rip),%rax (of the next instruction: 0x5000 + 11 + 0x1ff5 = 0x7000); mov 0x10(%rdi),%rdx;
  // mov (%rdx,%rax,8),%rax; test %rax,%rax; je end; movzwl 0x8(%rax),%eax; ret; end: call
  const std::vector<std::uint8_t> code = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x05, 0xf5, 0x1f, 0,    0,    0x48,
                                          0x8b, 0x57, 0x10, 0x48, 0x8b, 0x04, 0xc2, 0x48, 0x85, 0xc0, 0x74, 0x05,
                                          0x0f, 0xb7, 0x40, 0x08, 0xc3, 0xe8, 0,    0,    0,    0};
  const std::vector<Load> all = loads(code, {1, 0, other, 0, 0, request});
  REQUIRE(all.size() == 4);
  CHECK((all[0].at == 0x7000 && all[0].value == 1));
  CHECK((all[1].at == request + 16 && all[1].value == other));
  CHECK((all[2].at == other + 8 && all[2].bytes == 8 && all[2].value == request));
  CHECK((all[3].at == request + 8 && all[3].bytes == 2 && all[3].value == 0));
  CHECK(loads(code, {1, 0, other}).empty());  // there is none: it goes on to a call
  CHECK(loads(code, {1, 0, 0x100}).empty());  // cannot be read
  CHECK(loads({code.begin(), code.begin() + 28}, {1, 0, other, 0, 0, request}).empty());  // it does not return
}

TEST_CASE("functions that do more than read are not followed", "[unit]") {
  CHECK(loads({0x48, 0x8b, 0x07, 0xc3}, {7}).size() == 1);                    // mov (%rdi),%rax; ret
  CHECK(loads({0x8b, 0x07, 0xc3}, {7}).at(0).bytes == 4);                     // mov (%rdi),%eax; ret
  CHECK(loads({0x89, 0x07, 0xc3}).empty());                                   // mov %eax,(%rdi)
  CHECK(loads({0x66, 0x8b, 0x07, 0xc3}).empty());                             // mov (%rdi),%ax
  CHECK(loads({0x53, 0x48, 0x8b, 0x07, 0xc3}).empty());                       // push %rbx
  CHECK(loads({0x48, 0x8b, 0x06, 0xc3}).empty());                             // mov (%rsi),%rax: that is not known
  CHECK(loads({0x74, 0x00, 0x48, 0x8b, 0x07, 0xc3}).empty());                 // je, of nothing that was compared
  CHECK(loads({0xeb, 0xfe}).empty());                                         // jmp to itself
  CHECK(loads({0xeb, 0x01, 0x53, 0x48, 0x8b, 0x07, 0xc3}, {7}).size() == 1);  // jmp over it
  CHECK(loads({0x48, 0x8d, 0x47, 0x08, 0x48, 0x8b, 0x00, 0xc3}, {7, 9}).at(0).value == 9);  // lea 8(%rdi),%rax
  CHECK(loads({0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0x70, 0, 0, 0xc3}).empty());                // mov %fs:0x7000,%rax
  CHECK(loads({0x48, 0x8b, 0x04, 0x25, 0, 0x70, 0, 0, 0xc3}).size() == 1);                  // mov 0x7000,%rax
  CHECK(loads({}).empty());
}

}  // namespace luaspy::x86_64
