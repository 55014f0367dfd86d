#include "base/address_range.h"

#include <bitset>
#include <catch2/catch.hpp>

#include "support/dice.h"

namespace luaspy::address_range_test {
namespace {

constexpr std::size_t space = 64;
using Bits = std::bitset<space>;

Bits bits_of(const std::vector<AddressRange>& ranges) {
  Bits bits;
  for (const AddressRange& range : ranges) {
    for (Address at = range.start; at < range.end; ++at) bits.set(at);
  }
  return bits;
}

std::vector<AddressRange> some_ranges(Dice& dice) {
  std::vector<AddressRange> ranges;
  for (unsigned count = dice(7); count-- > 0;) {
    const Address start = dice(space);
    ranges.push_back({start, std::min<Address>(space, start + dice(12))});
  }
  return ranges;
}

bool is_in_order(const std::vector<AddressRange>& ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].start >= ranges[i].end || (i != 0 && ranges[i].start < ranges[i - 1].end)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("lists of ranges are joined, cut and compared like sets of addresses") {
  Dice dice;
  for (int i = 0; i < 3000; ++i) {
    std::vector<AddressRange> some = some_ranges(dice), others = some_ranges(dice);
    const Bits some_bits = bits_of(some), other_bits = bits_of(others);
    const std::uint64_t before = total_bytes(some);
    const std::uint64_t twice = sort_and_join(some);
    sort_and_join(others);
    CHECK(is_in_order(some));
    CHECK(bits_of(some) == some_bits);
    CHECK(total_bytes(some) == some_bits.count());
    CHECK(twice == before - some_bits.count());
    const std::vector<AddressRange> both = common_parts(some, others), left = without(some, others);
    CHECK(is_in_order(both));
    CHECK(is_in_order(left));
    CHECK(bits_of(both) == (some_bits & other_bits));
    CHECK(bits_of(left) == (some_bits & ~other_bits));
    CHECK(common_bytes(some, others) == (some_bits & other_bits).count());
    for (Address at = 0; at < space; ++at) {
      const AddressRange* const found = find_range(some, at);
      CHECK((found != nullptr) == some_bits.test(at));
      CHECK((found == nullptr || found->contains(at)));
    }
  }
}

}  // namespace luaspy::address_range_test
