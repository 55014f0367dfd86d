// A snapshot must have the same contents as the memory, in whatever way they were read; and memory
// that was used once is read at the beginning the next time.

#include <catch2/catch.hpp>
#include <random>

#include "stack/snapshot.h"

namespace luaspy::snapshot_test {
namespace {

constexpr Address from = 0x10000, to = 0x90000;  // the range that can be read

std::byte byte_at(Address address) { return static_cast<std::byte>((address * 0x9e3779b97f4a7c15) >> 56); }

// Memory that counts its reads.
class Counted : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override {
    ++calls;
    return fill(address, into);
  }
  void read_batch(std::span<Request> requests) const override {
    calls += !requests.empty();
    for (Request& request : requests) {
      request.done = fill(request.address, request.into);
      const std::size_t readable = std::min<std::size_t>(request.into.size(),
                                                         request.address < to ? to - request.address : 0);
      request.filled = fill(request.address, request.into.first(readable)) ? readable : 0;
    }
  }
  mutable int calls = 0;

 private:
  static bool fill(Address address, std::span<std::byte> into) {
    if (address < from || address + into.size() > to) return false;
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = byte_at(address + i);
    return true;
  }
};

bool right(const Snapshot& snapshot, Address address, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (!snapshot.read(address, bytes)) return false;
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] != byte_at(address + i)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("what one stop needed is one batch for the next", "[snapshot]") {
  const Counted memory;
  Snapshot snapshot(memory);
  Snapshot::Prediction prediction;
  const auto look = [&] {
    memory.calls = 0;
    snapshot.open(0x80010, 0x800, prediction);
    CHECK(right(snapshot, 0x80010, 0x800));
    CHECK(right(snapshot, 0x20ff0, 0x40));  // across pages
    CHECK(right(snapshot, 0x30008, 8));
    CHECK(right(snapshot, 0x30f08, 100));
    snapshot.prefetch(0x50000, 0x3000);
    snapshot.close();
    CHECK(right(snapshot, 0x51234, 0x500));
    snapshot.predict(prediction);
    return memory.calls;
  };
  CHECK(look() > 1);
  CHECK(look() == 1);
  CHECK(look() == 1);
}

TEST_CASE("a closed snapshot answers for nothing that it has not read", "[snapshot]") {
  const Counted memory;
  Snapshot snapshot(memory);
  snapshot.open(0x80010, 0x800, {});
  CHECK(right(snapshot, 0x20000, 8));
  snapshot.close();
  CHECK(right(snapshot, 0x20ff8, 8));  // of the same page
  CHECK(!right(snapshot, 0x21000, 8));
  CHECK(!right(snapshot, 0x20ffc, 8));
  CHECK(right(snapshot, 0x80400, 0x10));
}

// The end of a function pops registers from the stack, and call frame information still refers to
// where they were.
TEST_CASE("a closed snapshot has what lies right below the stack", "[snapshot]") {
  const Counted memory;
  Snapshot snapshot(memory);
  for (const Address sp : {Address{0x80010}, Address{0x80200}, Address{0x81000}}) {
    snapshot.open(sp, 0x800, {}, 128);
    snapshot.close();
    const std::size_t below = std::min<std::size_t>(sp % Snapshot::page_size, 128);
    CHECK(snapshot.stack_start() == sp);
    CHECK(snapshot.stack().size() == 0x800);
    CHECK(right(snapshot, sp - below, below + 0x800));
    CHECK(!right(snapshot, sp - below - 1, 1));
  }
}

TEST_CASE("of a stack that ends before its mapping the readable part is kept", "[snapshot]") {
  const Counted memory;
  Snapshot snapshot(memory);
  snapshot.open(to - 0x2010, 0x10000, {{0x20000, 3, 0}}, 128);
  CHECK(memory.calls == 1);
  snapshot.close();
  CHECK(snapshot.stack_start() == to - 0x2010);
  CHECK(snapshot.stack().size() == 0x2010);
  CHECK(right(snapshot, to - 0x2010 - 128, 128 + 0x2010));
  CHECK(!right(snapshot, to - 8, 16));
  CHECK(right(snapshot, 0x20000, 128));
  snapshot.open(to - 0x10, 0x10000, {});
  CHECK(snapshot.stack().size() == 0x10);
  snapshot.open(to + 0x10, 0x10000, {});
  CHECK(snapshot.stack().empty());
}

TEST_CASE("what is used no more is predicted once more, and then no longer", "[snapshot]") {
  const Counted memory;
  Snapshot snapshot(memory);
  Snapshot::Prediction prediction;
  snapshot.open(0x80010, 0x10, prediction);
  CHECK(right(snapshot, 0x20000, 8));
  snapshot.predict(prediction);
  for (const std::size_t still : {1u, 0u}) {
    snapshot.open(0x80010, 0x10, prediction);
    snapshot.predict(prediction);
    CHECK(prediction.size() == still);
  }
}

TEST_CASE("a prediction of memory that is gone costs nothing but itself", "[snapshot]") {
  const Counted memory;
  Snapshot snapshot(memory);
  snapshot.open(0x80010, 0x10, {{0x20000, 3, 0}, {0xa0000, 1, 0}, {0xa1000, ~std::uint64_t{0}, 0}});
  CHECK(right(snapshot, 0x20000, 128));
  CHECK(!right(snapshot, 0xa0000, 8));
  CHECK(right(snapshot, 0x80010, 0x10));
}

TEST_CASE("whatever was predicted, what is read is right", "[snapshot][slow]") {
  const Counted memory;
  Snapshot snapshot(memory);
  std::minstd_rand random(7);
  for (int round = 0; round < 300; ++round) {
    Snapshot::Prediction prediction;
    for (Address page = from; page < to; page += Snapshot::page_size) {
      if (random() % 3 == 0)
        prediction.push_back({page,
                              (std::uint64_t{random()} << 32 | random()) & (std::uint64_t{random()} << 31 | random()),
                              random() % 4 == 0 ? ~std::uint64_t{0} : 0});
    }
    snapshot.open(0x80010, random() % 0x4000, prediction);
    for (int i = 0; i < 50; ++i) {
      const Address address = from + random() % (to - from - 0x2100);
      const std::size_t size = 1 + random() % 0x2000;
      if (random() % 2 == 0) snapshot.prefetch(address, size);
      CHECK(right(snapshot, address, size));
    }
  }
}

}  // namespace luaspy::snapshot_test
