// The heaps that top shows: of the window, since the start, and in what the key `o` writes.

#include "top/top_heaps.h"

#include <catch2/catch.hpp>
#include <limits>
#include <sstream>

#include "input/raw_reader.h"
#include "top/top_history.h"
#include "top/top_text.h"

namespace luaspy::top_heaps_test {
namespace {

constexpr std::int64_t tenth = 100'000'000, whole = 1'000'000'000;

std::vector<HeapReading> heap_of(std::int64_t bytes, bool odd = false) {
  return {{0x1000, bytes, CollectorPhase::marking, static_cast<std::uint8_t>(odd ? 1 : 2)}};
}

}  // namespace

TEST_CASE("top's heaps: what is recent, and all", "[top]") {
  TopHeaps heaps(5 * whole);
  CHECK(!heaps.now(whole));
  // 1 MB more each second, for 20 s, with a collection each second; then nothing runs.
  for (int i = 0; i <= 200; ++i) heaps.add(1, i * tenth, heap_of(1'000'000 + i * 100'000, i / 10 % 2 != 0));
  std::optional<TopHeap> now = heaps.now(20 * whole);
  REQUIRE(now);
  CHECK(now->states == 1);
  CHECK(now->recent.last == 21'000'000);
  CHECK(*now->recent.growth == Approx(1e6).epsilon(0.1));
  CHECK(*now->all.growth == Approx(1e6).epsilon(0.1));
  CHECK(*now->recent.cycles == Approx(1).epsilon(0.25));
  CHECK(*now->all.cycles == Approx(1).epsilon(0.05));
  CHECK(now->all.least == 1'000'000);
  CHECK(now->recent.least >= 15'000'000);
  now = heaps.now(30 * whole);
  CHECK(now->recent.last == 21'000'000);
  CHECK(*now->recent.growth == 0);
  CHECK(*now->recent.cycles == 0);
  CHECK(*now->all.cycles == Approx(20.0 / 30).epsilon(0.05));
  constexpr int wide = std::numeric_limits<int>::max();
  CHECK(heap_line(*now, false, wide) == "Lua heap 20.0 MiB, 0 B/s, no cycle seen");
  CHECK(heap_line(*now, true, wide).find("at least 0.67 cycles/s") != std::string::npos);
  CHECK(heap_line(*now, false, 30) == "Lua heap 20.0 MiB, 0 B/s");
}

TEST_CASE("top's heaps: reset, and a process that ends", "[top]") {
  TopHeaps heaps(5 * whole);
  for (int i = 0; i <= 50; ++i) heaps.add(1, i * tenth, heap_of(i * 1000, i % 2 != 0));
  heaps.add(2, 5 * whole, heap_of(7));
  CHECK(heaps.now(5 * whole)->states == 2);
  CHECK(heaps.now(5 * whole)->all.last == 50'007);
  heaps.end(1, 6 * whole);
  CHECK(heaps.now(6 * whole)->all.last == 7);
  heaps.reset(6 * whole);
  const std::optional<TopHeap> now = heaps.now(8 * whole);
  CHECK(now->all.most == 7);
  CHECK(*now->all.cycles == 0);
}

TEST_CASE("what top writes has the heaps, also after it began anew", "[top]") {
  EventTables tables;
  TopHistory history(tables, Metadata{});
  const auto add = [&](std::int64_t number, std::int64_t bytes) {
    Sample sample;
    sample.heaps = heap_of(bytes);
    history.add(tables.threads.intern({7, "worker", 1, "lua"}), {number * tenth, tenth}, sample);
    history.advance(number, number * tenth, CpuUse());
  };
  const auto sizes = [&] {
    std::istringstream in(history.recording());
    const Result<Profile> profile = read_raw(in, {});
    REQUIRE(profile);
    std::vector<std::int64_t> found;
    for (const HeapTracks::Of& heap : profile->heaps.states()) {
      CHECK(heap.state.pid == 1);
      for (const HeapTrack::Point& point : heap.track.points()) found.push_back(point.last);
    }
    return found;
  };
  add(1, 100), add(2, 100), add(3, 300);
  CHECK(sizes() == std::vector<std::int64_t>{100, 300});
  history.begin_anew();
  CHECK(sizes().empty());
  add(4, 300), add(5, 200);
  CHECK(sizes() == std::vector<std::int64_t>{300, 200});
  history.end(1, {6 * tenth, 0});
  CHECK(sizes() == std::vector<std::int64_t>{300, 200, 0});
}

}  // namespace luaspy::top_heaps_test
