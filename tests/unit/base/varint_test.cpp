#include "base/varint.h"

#include <catch2/catch.hpp>
#include <deque>
#include <limits>
#include <string>
#include <vector>

namespace luaspy::varint_test {

TEST_CASE("numbers of 7 bits a byte are read as they were written", "[unit]") {
  std::deque<std::uint8_t> bytes;
  const std::vector<std::uint64_t> numbers = {
      0, 1, 127, 128, 300, 16383, 16384, std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max()};
  for (const std::uint64_t number : numbers) put_varint(bytes, number);
  CHECK(bytes.size() == 1 + 1 + 1 + 2 + 2 + 2 + 3 + 10 + 10);
  auto next = bytes.cbegin();
  for (const std::uint64_t number : numbers) CHECK(read_varint(next, bytes.cend()) == number);
  CHECK(next == bytes.cend());
  CHECK(!read_varint(next, bytes.cend()));
}

TEST_CASE("a number that does not end is none", "[unit]") {
  const auto take = [](const std::string& bytes) {
    auto next = bytes.begin();
    return read_varint(next, bytes.end());
  };
  std::string bytes;
  put_varint(bytes, std::uint64_t{300});
  CHECK(bytes == "\xac\x02");
  CHECK(!take(bytes.substr(0, 1)));
  CHECK(take(std::string(9, '\x80') + '\x01') == std::uint64_t{1} << 63);
  CHECK(!take(std::string(10, '\x80') + '\x01'));
}

}  // namespace luaspy::varint_test
