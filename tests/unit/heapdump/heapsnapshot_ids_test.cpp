#include "heapdump/heapsnapshot_ids.h"

#include <catch2/catch.hpp>

#include <set>

using namespace luaspy;

namespace {

constexpr Address sixteen_gib = Address{1} << 34;

std::set<std::uint32_t> snapshot_ids(const std::vector<Address>& addresses) {
  const HeapsnapshotIds ids(addresses);
  std::set<std::uint32_t> all;
  for (const Address address : addresses) all.insert(ids.of(address));
  return all;
}

}  // namespace

TEST_CASE("ids of objects are odd, and depend on the address alone", "[heap][heapsnapshot]") {
  const std::vector<Address> some = {0x55ff'1a1b'6370, 0x55ff'1a1b'6378, 0x7fff'0000'1000};
  std::vector<Address> more = some;
  more.push_back(0x55ff'1a1c'0000);
  more.insert(more.begin(), 0x55ff'1a00'0010);
  const HeapsnapshotIds before(some), after(more);
  for (const Address address : some) {
    CHECK(before.of(address) == after.of(address));
    CHECK(before.of(address) % 2 == 1);
    CHECK(before.of(address) == 2 * (address >> 3 & 0x7fff'ffff) + 1);  // docs/heap-formats.md
  }
}

TEST_CASE("addresses that have the same lower bits have different ids", "[heap][heapsnapshot]") {
  const Address low = 0x5555'0000'1000;
  std::vector<Address> all;
  for (Address i = 0; i < 1000; ++i) {
    for (Address far = 0; far < 4; ++far) all.push_back(low + far * sixteen_gib + i * 16);
  }
  CHECK(snapshot_ids(all).size() == all.size());
  // Beginnings and ends that meet only across the end of the numbers.
  const std::vector<Address> around = {sixteen_gib - 16,    sixteen_gib - 8,     2 * sixteen_gib - 32,
                                       2 * sixteen_gib - 8, 2 * sixteen_gib + 8, 3 * sixteen_gib + 8};
  CHECK(snapshot_ids(around).size() == around.size());
}

TEST_CASE("no object has the id of the root", "[heap][heapsnapshot]") {
  const std::vector<Address> all = {sixteen_gib, sixteen_gib + 8, 5 * sixteen_gib};
  const std::set<std::uint32_t> ids = snapshot_ids(all);
  CHECK(ids.size() == all.size());
  CHECK(!ids.contains(HeapsnapshotIds::root));
}
