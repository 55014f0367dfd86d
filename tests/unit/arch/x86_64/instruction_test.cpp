#include "arch/x86_64/instruction.h"

#include <catch2/catch.hpp>
#include <vector>

namespace luaspy::x86_64 {

TEST_CASE("an instruction has at most 15 bytes, whatever prefixes it begins with") {
  constexpr std::byte prefix{0x3e}, nop{0x90};
  std::vector<std::byte> code(14, prefix);
  code.push_back(nop);
  const std::optional<Instruction> longest = read_instruction(code, 0);
  REQUIRE(longest);
  CHECK(longest->length == 15);
  CHECK(longest->opcode == 0x90);
  code.insert(code.begin(), prefix);
  CHECK(!read_instruction(code, 0));
  CHECK(read_instruction(code, 1));
}

}  // namespace luaspy::x86_64
