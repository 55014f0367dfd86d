#include "attach/kernel_log.h"

#include <linux/perf_event.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

using namespace luaspy;

namespace {

// A ring that is filled downwards, as the kernel does.
class FakeRing {
 public:
  explicit FakeRing(std::size_t size = 4096) : words_(size / 8) {}

  void put(std::uint32_t type, std::uint32_t tid, std::uint64_t time, std::vector<std::uint64_t> addresses,
           std::optional<std::uint64_t> count = {}, std::optional<std::uint16_t> size = {}) {
    std::vector<std::uint64_t> record = {0, std::uint64_t{tid} << 32 | 7, time, count.value_or(addresses.size())};
    record.insert(record.end(), addresses.begin(), addresses.end());
    record[0] = type | std::uint64_t{size.value_or(static_cast<std::uint16_t>(8 * record.size()))} << 48;
    head_ -= 8 * record.size();
    for (std::size_t i = 0; i < record.size(); ++i) words_[(head_ / 8 + i) % words_.size()] = record[i];
  }
  void sample(std::uint32_t tid, std::uint64_t time, std::vector<std::uint64_t> addresses) {
    put(PERF_RECORD_SAMPLE, tid, time, std::move(addresses));
  }
  std::vector<Address> find(std::uint64_t from, pid_t tid) const {
    KernelChain chain;
    chain.add(99);  // is replaced
    KernelLog::find({reinterpret_cast<const std::byte*>(words_.data()), 8 * words_.size(), head_}, from, tid, chain);
    return {chain.addresses().begin(), chain.addresses().end()};
  }
  std::vector<std::uint64_t>& words() { return words_; }
  void set_head(std::uint64_t head) { head_ = head; }

 private:
  std::vector<std::uint64_t> words_;
  std::uint64_t head_ = 0;
};

using Chain = std::vector<Address>;

}  // namespace

TEST_CASE("kernel log: the record of the tick, without the marks of the chain") {
  FakeRing ring;
  CHECK(ring.find(100, 5).empty());
  ring.sample(5, 150, {static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL), 0xa, 0xb});
  CHECK(ring.find(100, 5) == Chain{0xa, 0xb});
  CHECK(ring.find(150, 5) == Chain{0xa, 0xb});
  CHECK(ring.find(151, 5).empty());  // of an earlier tick
}

TEST_CASE("kernel log: nobody else's chain") {
  FakeRing ring;
  ring.sample(6, 150, {0xa});
  CHECK(ring.find(100, 5).empty());
  // Another thread was in the kernel when the tick came: the later record is not the tick's.
  ring.sample(5, 10150, {0xb});
  CHECK(ring.find(100, 5).empty());
  CHECK(ring.find(100, 6) == Chain{0xa});
}

TEST_CASE("kernel log: of several records since the tick, the first") {
  FakeRing ring;
  ring.sample(5, 50, {0x1});
  ring.sample(5, 150, {0xa});
  ring.sample(5, 10150, {0xb});
  ring.sample(5, 20150, {0xc});
  CHECK(ring.find(100, 5) == Chain{0xa});
}

TEST_CASE("kernel log: records wrap around, and old ones are overwritten") {
  FakeRing ring;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ring.sample(5, 1000 * i, std::vector<std::uint64_t>(40, i + 1));
    CHECK(ring.find(1000 * i, 5) == Chain(40, i + 1));
  }
  CHECK(ring.find(1, 5).size() == 40);  // the oldest that is whole
}

TEST_CASE("kernel log: other records are skipped") {
  FakeRing ring;
  ring.sample(5, 150, {0xa});
  ring.put(PERF_RECORD_THROTTLE, 5, 160, {});
  CHECK(ring.find(100, 5) == Chain{0xa});
}

TEST_CASE("kernel log: damaged records end the search") {
  for (const std::uint16_t size : std::initializer_list<std::uint16_t>{0, 8, 24, 33, 65528}) {
    FakeRing ring;
    ring.put(PERF_RECORD_SAMPLE, 5, 150, {0xa}, {}, size);
    CHECK(ring.find(100, 5).empty());
  }
  FakeRing ring;
  ring.put(PERF_RECORD_SAMPLE, 5, 150, {0xa}, std::uint64_t{1} << 40);  // more addresses than it has room for
  CHECK(ring.find(100, 5).empty());
}

TEST_CASE("kernel log: any bytes and any head end, with a bounded chain") {
  std::mt19937_64 dice(1);
  FakeRing ring;
  for (int round = 0; round < 2000; ++round) {
    for (std::uint64_t& word : ring.words()) word = dice() >> (dice() % 64);
    ring.set_head(dice() & ~std::uint64_t{7});
    CHECK(ring.find(dice() >> (dice() % 64), 5).size() <= KernelChain::most);
  }
}
