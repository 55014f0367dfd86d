// Which object at a sampled address is the sampled one, by its place among the others.

#include "alloc/live_blocks.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/dice.h"

namespace luaspy::live_blocks_test {

TEST_CASE("what is younger than what was made later was made later", "[unit]") {
  // Made at 10 and still there, at the sixth place; something else has the address of the one made at
  // 20, and was made after 30.
  const std::vector<AgedPlaces> sampled = {{10, {6}}, {20, {1}}, {25, {-1}}, {40, {0}}};
  const std::vector<AgedPlaces> marks = {{5, {7, 9}}, {30, {2, 3, 4}}};
  CHECK(made_later(sampled, marks) == std::vector<bool>{false, true, false, false});
  CHECK(made_later(sampled, {}) == std::vector<bool>{false, false, false, false});
}

// A list that is followed while the program changes it may lead to an old object.
TEST_CASE("one old object in a mark makes nothing younger", "[unit]") {
  const std::vector<AgedPlaces> sampled = {{10, {50}}, {11, {3}}};
  const std::vector<AgedPlaces> marks = {{20, {4, 5, 900}}};
  CHECK(made_later(sampled, marks) == std::vector<bool>{false, true});
}

// Objects are made, most are freed, and their addresses are used again.
TEST_CASE("what is still there is never taken for something made later", "[unit]") {
  Dice dice;
  for (int round = 0; round < 200; ++round) {
    const int all = 400, kept_of_ten = 1 + round % 9;
    std::vector<int> times;  // of those that are still there, the oldest first
    for (int time = 0; time < all; ++time) {
      if (static_cast<int>(dice(10)) < kept_of_ten) times.push_back(time);
    }
    const auto place_of = [&](int time) {
      const auto younger = std::ranges::upper_bound(times, time);
      const bool is_there = younger != times.begin() && *(younger - 1) == time;
      return is_there ? static_cast<std::int64_t>(times.end() - younger) : -1;
    };
    std::vector<AgedPlaces> sampled, marks;
    for (int time = 0; time < all; time += 7) {
      sampled.push_back({time, {place_of(time)}});
      if (time % 2 == 0) continue;
      AgedPlaces& mark = marks.emplace_back(AgedPlaces{time, {}});
      for (int made = time + 1; made < std::min(time + 6, all); ++made) mark.places.push_back(place_of(made));
    }
    CHECK(std::ranges::none_of(made_later(sampled, marks), [](bool later) { return later; }));
    // Each of them is where one is that was made 60 later.
    for (AgedPlaces& each : sampled) {
      int next = static_cast<int>(each.from_ns) + 60;
      while (next < all && place_of(next) < 0) ++next;
      each.places = {next < all ? place_of(next) : -1};
    }
    const std::vector<bool> later = made_later(sampled, marks);
    std::int64_t told = 0, moved = 0;
    for (std::size_t i = 0; i < sampled.size(); ++i) {
      told += later[i];
      moved += sampled[i].places.front() >= 0;
    }
    CHECK(told * 10 >= moved * (kept_of_ten > 2 ? 6 : 1));
  }
}

}  // namespace luaspy::live_blocks_test
