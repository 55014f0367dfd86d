// What is kept of the sizes of heaps, and what is said of them.

#include "profile/heap_track.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "profile/heap_text.h"

namespace luaspy::profile_heap_track_test {
namespace {

constexpr std::int64_t ms = 1'000'000, second = 1'000'000'000;

HeapReading reading(std::int64_t bytes, std::uint8_t dead_white, CollectorPhase phase = CollectorPhase::marking,
                    Address G = 0x1000) {
  return {G, bytes, phase, dead_white};
}

}  // namespace

TEST_CASE("heaps: only what has changed is a change, and an exchange of whites is a collection", "[unit]") {
  HeapChanges changes;
  const auto first = changes.observe(1, reading(100, 1));
  REQUIRE(first);
  CHECK(first->state == 0);
  CHECK(first->bytes == 100);
  CHECK(!first->collected);
  CHECK(!changes.observe(1, reading(100, 1)));
  CHECK(changes.observe(1, reading(100, 1, CollectorPhase::sweeping)));
  const auto collected = changes.observe(1, reading(100, 2, CollectorPhase::sweeping));
  REQUIRE(collected);
  CHECK(collected->collected);
  // Of another process, and another one of the same.
  CHECK(changes.observe(2, reading(100, 1))->state == 1);
  CHECK(changes.observe(1, reading(100, 1, CollectorPhase::pause, 0x2000))->state == 2);
  REQUIRE(changes.states().size() == 3);
  CHECK(changes.states()[1].pid == 2);
  const std::vector<HeapChange> gone = changes.end(1);
  REQUIRE(gone.size() == 2);
  CHECK(gone[0].bytes == 0);
  CHECK(changes.end(1).empty());
}

TEST_CASE("heaps: their number is bounded", "[unit]") {
  HeapChanges changes;
  for (Address G = 1; G <= 2 * HeapChanges::most_states; ++G)
    CHECK(changes.observe(1, reading(1, 1, CollectorPhase::pause, 0x1000 * G)).has_value() ==
          (G <= HeapChanges::most_states));
  CHECK(changes.states().size() == HeapChanges::most_states);
}

TEST_CASE("a heap's track has as many points as it may have, and keeps least, most and cycles", "[unit]") {
  HeapTrack track;
  std::int64_t least = 1 << 30, most = 0, cycles = 0, last = 0;
  constexpr int values = 100'000;
  for (int i = 0; i < values; ++i) {
    last = 1'000'000 + (i * 7919) % 1'000'003;
    least = std::min(least, last), most = std::max(most, last);
    const bool collected = i % 10 == 9;
    cycles += collected;
    track.add(i * 10 * ms, last, CollectorPhase::marking, collected);
    REQUIRE(track.points().size() <= HeapTrack::most_points);
  }
  CHECK(track.points().size() > HeapTrack::most_points / 4);
  const std::optional<HeapSummary> summary = track.summary(values * 10 * ms);
  REQUIRE(summary);
  CHECK(summary->last == last);
  CHECK(summary->least == least);
  CHECK(summary->most == most);
  CHECK(track.points().back().cycles == cycles);
  CHECK(*summary->cycles == Approx(static_cast<double>(cycles) / (values / 100)));
  CHECK(std::ranges::is_sorted(track.points(), {}, &HeapTrack::Point::start_ns));
  std::int64_t before = 0;
  track.for_each_value([&](std::int64_t at_ns, std::int64_t bytes) {
    CHECK(at_ns >= before);
    CHECK((bytes >= least && bytes <= most));
    before = at_ns;
  });
}

TEST_CASE("growth is what the least sizes grow by, not what the collector has not come to", "[unit]") {
  const auto grows = [](auto bytes_at) {
    HeapTrack track;
    for (int i = 0; i <= 1000; ++i) track.add(i * 10 * ms, bytes_at(i / 100.0), CollectorPhase::marking, false);
    return *track.summary(10 * second)->growth;
  };
  CHECK(grows([](double s) { return std::llround(1e6 + 5e5 * s); }) == Approx(5e5).epsilon(0.01));
  CHECK(grows([](double s) { return std::llround(9e6 - 5e5 * s); }) == Approx(-5e5).epsilon(0.01));
  // A saw with a tooth a second, flat and rising.
  CHECK(std::abs(grows([](double s) { return std::llround(1e6 + 4e6 * (s - std::floor(s))); })) < 1);
  CHECK(grows([](double s) { return std::llround(1e6 + 5e5 * std::floor(s) + 4e6 * (s - std::floor(s))); }) ==
        Approx(5e5).epsilon(0.25));
}

TEST_CASE("of a short time nothing is said of rates, and what does not change keeps its size", "[unit]") {
  HeapTrack track;
  CHECK(!track.summary(second));
  track.add(0, 100, CollectorPhase::pause, false);
  track.add(10 * ms, 200, CollectorPhase::pause, true);
  CHECK(!track.summary(20 * ms)->growth);
  CHECK(!track.summary(20 * ms)->cycles);
  const std::optional<HeapSummary> later = track.summary(10 * second);
  CHECK(later->last == 200);
  CHECK(*later->growth == Approx(20));
  CHECK(*later->cycles == Approx(0.1));
  track.forget_before(5 * second);
  REQUIRE(track.points().size() == 1);
  const std::optional<HeapSummary> recent = track.summary(10 * second);
  CHECK(recent->least == 200);
  CHECK(*recent->growth == 0);
  CHECK(*recent->cycles == 0);
}

TEST_CASE("a window forgets cycles that were before it", "[unit]") {
  HeapTrack track;
  for (int i = 0; i < 100; ++i) track.add(i * 100 * ms, 1000, CollectorPhase::pause, true);
  track.forget_before(5 * second);
  CHECK(*track.summary(10 * second)->cycles == Approx(10).epsilon(0.05));
}

TEST_CASE("heaps together, and as text", "[unit]") {
  HeapTracks heaps;
  CHECK(heap_text(heaps, second).empty());
  CHECK(heaps.add_state({1, 0x1000}) == 0);
  heaps.add(0, {0, 1 << 20, CollectorPhase::pause, false});
  CHECK(heap_text(heaps, 10 * ms) == "1.0 MiB at the end, 1.0 MiB to 1.0 MiB");
  CHECK(heaps.add_state({1, 0x2000}) == 1);
  CHECK(heaps.add_state({2, 0x1000}) == 2);
  heaps.add(second, {1, 3 << 20, CollectorPhase::pause, false});
  heaps.add(2 * second, {2, 1 << 20, CollectorPhase::pause, false});
  heaps.add(3 * second, {0, 2 << 20, CollectorPhase::sweeping, true});
  heaps.add(9 * second, {2, 0, CollectorPhase::pause, false});
  CHECK(heap_text(heaps, 10 * second) ==
        "5.0 MiB at the end in 3 states, 1.0 MiB to 6.0 MiB, +819.2 KiB/s, at least 0.10 cycles/s");
  CHECK(heap_name(heaps, 0) == "Lua heap");
  CHECK(heap_name(heaps, 1) == "Lua heap 2");
  CHECK(heap_name(heaps, 2) == "Lua heap");
  CHECK(growth_text(0) == "0 B/s");
  CHECK(growth_text(-2048) == "-2.0 KiB/s");
  CHECK(cycles_text(0) == "no cycle seen");
  CHECK(cycles_text(12.4) == "at least 12 cycles/s");
}

}  // namespace luaspy::profile_heap_track_test
