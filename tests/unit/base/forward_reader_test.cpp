#include "base/forward_reader.h"

#include <catch2/catch.hpp>
#include <vector>

#include "support/dice.h"

namespace luaspy::forward_reader_test {
namespace {

// Each byte says where it is. One page cannot be read, and the memory ends within another one.
class Numbered : public Memory {
 public:
  static constexpr Address start = 0x10000, hole = 0x30000, end = 0x50800;
  bool read(Address address, std::span<std::byte> into) const override {
    asked.push_back(into.size());
    const Address last = address + into.size();
    if (address < start || last > end || (address < hole + 4096 && last > hole)) return false;
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::byte>((address + i) * 7 >> 3);
    return true;
  }
  mutable std::vector<std::size_t> asked;
};

}  // namespace

TEST_CASE("a forward reader reads what the memory has, wherever the walk goes") {
  const Numbered memory;
  ForwardReader reader(memory);
  Dice dice;
  Address at = Numbered::start;
  for (int i = 0; i < 20'000; ++i) {
    at = dice(50) == 0 ? Numbered::start - 4096 + dice(0x43000) : at + dice(i % 7 == 0 ? 5000 : 60);
    std::vector<std::byte> bytes(1 + dice(200)), expected(bytes.size());
    const bool has = memory.read(at, expected);
    CHECK(reader.read(at, bytes) == has);
    if (has) CHECK(bytes == expected);
  }
}

TEST_CASE("a forward reader reads ahead only where it reads everything") {
  const Numbered memory;
  ForwardReader reader(memory);
  std::uint64_t word = 0;
  for (Address at = Numbered::start; at < Numbered::start + 0x10000; at += 32) CHECK(reader.get(at, word));
  CHECK(memory.asked.size() <= 6);
  memory.asked.clear();
  for (Address at = 0x38000; at < 0x48000; at += 0x4000) CHECK(reader.get(at, word));
  CHECK(memory.asked == std::vector<std::size_t>(4, 4096));
}

}  // namespace luaspy::forward_reader_test
