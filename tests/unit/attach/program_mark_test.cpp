#include "attach/program_mark.h"

#include <elf.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

namespace luaspy::program_mark_test {
namespace {

std::string entry(std::uint64_t type, std::uint64_t value) {
  std::string bytes(2 * sizeof type, '\0');
  std::memcpy(bytes.data(), &type, sizeof type);
  std::memcpy(bytes.data() + sizeof type, &value, sizeof value);
  return bytes;
}

}  // namespace

TEST_CASE("where the random bytes of a program are", "[program_mark]") {
  const std::string before = entry(AT_PAGESZ, 4096), random = entry(AT_RANDOM, 0x7ffd'1234'5678),
                    end = entry(AT_NULL, 0);
  CHECK(random_bytes_in(before + random + end) == 0x7ffd'1234'5678);
  CHECK(random_bytes_in(before + end + random) == 0);
  CHECK(random_bytes_in(before + random.substr(0, 15)) == 0);
  CHECK(random_bytes_in("") == 0);
}

TEST_CASE("a program keeps its mark", "[program_mark]") {
  const std::optional<ProgramMark> mark = program_mark(::getpid());
  REQUIRE(mark);
  const std::optional<ProgramMark> again = program_mark(::getpid());
  REQUIRE(again);
  CHECK_FALSE(mark->differs(*again));
  CHECK_FALSE(program_mark(1 << 23));  // no process has such a number (proc(5), pid_max)
}

TEST_CASE("a mark that a program erases is no other program's", "[program_mark]") {
  const ProgramMark mark = {0x7ffd'0000'1000, {std::byte{1}, std::byte{2}}};
  ProgramMark later = mark;
  later.bytes[1] = std::byte{3};
  CHECK(mark.differs(later));
  later.bytes = {};
  CHECK_FALSE(mark.differs(later));
  later.at += 16;
  CHECK(mark.differs(later));
}

}  // namespace luaspy::program_mark_test
