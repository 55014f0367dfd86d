#include "arch/x86_64/calls.h"

#include <array>
#include <catch2/catch.hpp>
#include <initializer_list>

namespace luaspy::x86_64 {
namespace {

template <std::size_t size>
std::array<std::byte, size> code(std::initializer_list<unsigned> bytes, bool at_end) {
  std::array<std::byte, size> all{};
  std::size_t at = at_end ? size - bytes.size() : 0;
  for (const unsigned byte : bytes) all[at++] = std::byte(byte);
  return all;
}

CallSite before(std::initializer_list<unsigned> bytes) { return call_before(0x1000, code<longest_call>(bytes, true)); }

}  // namespace

TEST_CASE("calls before a return address", "[arch]") {
  CHECK(before({0xe8, 0x10, 0, 0, 0}).kind == CallSite::Kind::direct);
  CHECK(before({0xe8, 0x10, 0, 0, 0}).target == 0x1010);
  CHECK(before({0xe8, 0xf0, 0xff, 0xff, 0xff}).target == 0xff0);
  CHECK(before({0xff, 0xd0}).kind == CallSite::Kind::indirect);                    // call *%rax
  CHECK(before({0x41, 0xff, 0xd4}).kind == CallSite::Kind::indirect);              // call *%r12
  CHECK(before({0xff, 0x50, 0x18}).kind == CallSite::Kind::indirect);              // call *24(%rax)
  CHECK(before({0xff, 0x54, 0x24, 0x18}).kind == CallSite::Kind::indirect);        // call *24(%rsp)
  CHECK(before({0xff, 0x15, 0, 1, 0, 0}).kind == CallSite::Kind::indirect);        // call *256(%rip)
  CHECK(before({0xff, 0x14, 0xc5, 0, 1, 0, 0}).kind == CallSite::Kind::indirect);  // call *256(,%rax,8)
  CHECK(before({0xff, 0xe0}).kind == CallSite::Kind::none);                        // jmp *%rax
  CHECK(before({0xe9, 0x10, 0, 0, 0}).kind == CallSite::Kind::none);               // jmp
  CHECK(before({0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}).kind == CallSite::Kind::none);
}

TEST_CASE("a direct call", "[arch]") {
  CHECK(direct_call_at(0x2000, code<5>({0xe8, 0xfb, 0xff, 0xff, 0xff}, false)) == 0x2000);
  CHECK(direct_call_at(0x2000, code<5>({0xe9, 0, 0, 0, 0}, false)) == std::nullopt);
  CHECK(direct_jump_at(0x2000, code<5>({0xe9, 0xfb, 0xff, 0xff, 0xff}, false)) == 0x2000);
  CHECK(direct_jump_at(0x2000, code<5>({0xe8, 0, 0, 0, 0}, false)) == std::nullopt);
  CHECK(direct_call_at(0x2000, code<4>({0xe8, 0, 0, 0}, false)) == std::nullopt);
}

TEST_CASE("entries of the procedure linkage table", "[arch]") {
  const auto slot = [](std::initializer_list<unsigned> bytes) {
    return plt_slot(0x3000, code<plt_entry_bytes>(bytes, false));
  };
  CHECK(slot({0xff, 0x25, 0xfa, 0x0f, 0, 0}) == 0x4000);
  CHECK(slot({0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0x0f, 0, 0}) == 0x4000);        // endbr64
  CHECK(slot({0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf5, 0x0f, 0, 0}) == 0x4000);  // and bnd
  CHECK(slot({0xff, 0x35, 0xfa, 0x0f, 0, 0}) == std::nullopt);                          // push, of the first entry
}

}  // namespace luaspy::x86_64
