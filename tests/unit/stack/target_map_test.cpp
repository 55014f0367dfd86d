#include "stack/target_map.h"

#include <catch2/catch.hpp>

namespace luaspy::target_map_test {
namespace {

class NoMemory : public Memory {
 public:
  bool read(Address, std::span<std::byte>) const override { return false; }
};

class FakeMapped : public Mapped {
 public:
  AddressSpace address_space() const override { return AddressSpace(mappings); }
  FileDescriptor open_mapped(const Mapping&) const override { return {}; }
  std::vector<Mapping> mappings;
};

// Does what StackReader does between ticks. Returns whether the mappings were read.
bool settle(TargetMap& map) {
  if (!map.is_due()) return false;
  AddressSpace space = map.look();
  const bool new_code = map.has_new_code(space);
  map.update(std::move(space));
  if (new_code) map.find_luas();
  return true;
}

Mapping code_at(Address start) { return {.start = start, .end = start + 0x1000, .readable = true, .executable = true}; }

// A target that has just been opened.
struct Opened {
  explicit Opened(Address code) {
    mapped.mappings.push_back(code_at(code));
    map.update(map.look());
    map.find_luas();
  }
  NoMemory memory;
  FakeMapped mapped;
  KnownFiles known;
  TargetMap map{mapped, memory, known};
};

NativeFrame frame_at(Address pc) {
  NativeFrame frame;
  frame.pc = frame.lookup = pc;
  return frame;
}

}  // namespace

TEST_CASE("code that no mapping explains is looked for less and less often", "[target_map]") {
  Opened target(0x8000);
  TargetMap& map = target.map;
  map.observe({frame_at(0x8000)});
  CHECK(!settle(map));  // no unknown code was seen
  const std::vector<NativeFrame> frames = {frame_at(0x1000)};
  map.observe(frames);
  CHECK(settle(map));
  CHECK(!settle(map));  // and none since then
  int looks = 0;
  constexpr int ticks = 1000;
  for (int tick = 0; tick < ticks; ++tick) {
    map.observe(frames);
    looks += settle(map);
  }
  CHECK(looks > 10);
  CHECK(looks < 30);
  // If there is new code, there may be more.
  target.mapped.mappings.insert(target.mapped.mappings.begin(), code_at(0x1000));
  constexpr int longest_pause = 63;
  int waited = 0;
  do map.observe(frames);
  while (!settle(map) && ++waited <= longest_pause);
  CHECK(waited <= longest_pause);
  map.observe({frame_at(0x9000)});
  CHECK(settle(map));
}

// Only the program and its loader are mapped when it has just been executed.
TEST_CASE("mappings are read again before the first look at a program", "[target_map]") {
  Opened target(0x1000);
  TargetMap& map = target.map;
  target.mapped.mappings.push_back(code_at(0x3000));
  CHECK(settle(map));
  CHECK(map.modules().executes(0x3000));
  SECTION("and not afterwards, if it is explained") {
    int looks = 0;
    constexpr int ticks = 100;
    for (int tick = 0; tick < ticks; ++tick) {
      map.observe({frame_at(0x1000), frame_at(0x3000)});
      looks += settle(map);
    }
    CHECK(looks == 0);
  }
  SECTION("and at once if it is not") {
    constexpr int ticks = 5;
    for (int tick = 0; tick < ticks; ++tick) settle(map);
    map.observe({frame_at(0x5000)});
    CHECK(settle(map));
  }
  SECTION("but not for ever, if it sleeps") {
    int looks = 0;
    constexpr int ticks = 1000;
    for (int tick = 0; tick < ticks; ++tick) looks += settle(map);
    CHECK(looks == 6);
  }
}

}  // namespace luaspy::target_map_test
