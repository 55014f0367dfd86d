#include "profile/share.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

namespace luaspy::profile_share_test {
namespace {

Weights weights(int count, double weight) {
  Weights weights;
  for (int i = 0; i < count; ++i) weights.add(weight);
  return weights;
}

Share share(Weights part, const Weights& rest) {
  Weights all = part;
  all += rest;
  return share_of(part, all);
}

}  // namespace

TEST_CASE("a share's interval is Wilson's where all samples weigh the same", "[unit]") {
  const Share half = share(weights(50, 7), weights(50, 7));
  CHECK(half.percent == Approx(50));
  CHECK(half.points == Approx(9.62).epsilon(0.01));
  const Share tenth = share(weights(10, 1), weights(90, 1));  // 5.5 to 17.4 %
  CHECK(tenth.percent == Approx(10));
  CHECK(tenth.points == Approx(7.44).epsilon(0.01));
  CHECK(share({}, weights(100, 1)).points == Approx(3.7).epsilon(0.01));  // 0 to 3.7 %
  CHECK(share(weights(100, 1), {}).points == Approx(3.7).epsilon(0.01));
  CHECK(share({}, {}).points == 100);
}

TEST_CASE("a few heavy samples make an interval wide", "[unit]") {
  CHECK(share(weights(2, 50), weights(100, 1)).points > 4 * share(weights(100, 1), weights(100, 1)).points);
}

TEST_CASE("samples that come together say less than as many independent ones", "[unit]") {
  Weights all = weights(90, 1);
  all += weights(90, 1);
  CHECK(share_of(weights(90, 1), all, 1.8).points == Approx(share(weights(50, 1), weights(50, 1)).points));
}

TEST_CASE("one light sample says little", "[unit]") { CHECK(share(weights(1, 0.001), weights(10, 1)).points > 8); }

TEST_CASE("19 of 20 intervals have the truth, whatever the weights", "[unit]") {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> of_part(1), of_rest(4);
  constexpr int rounds = 4000;
  for (const double part_of_samples : {0.1, 0.3, 0.7}) {
    // Samples of the part weigh four times as much.
    const double truth = 100 * part_of_samples * 4 / (part_of_samples * 4 + 1 - part_of_samples);
    std::bernoulli_distribution is_part(part_of_samples);
    int inside = 0;
    for (int round = 0; round < rounds; ++round) {
      Weights part, rest;
      for (int i = 0; i < 200; ++i) {
        if (is_part(random)) part.add(of_part(random));
        else rest.add(of_rest(random));
      }
      const Share found = share(part, rest);
      inside += std::abs(found.percent - truth) <= found.points;
    }
    CAPTURE(part_of_samples);
    CHECK(inside > rounds * 93 / 100);
    CHECK(inside < rounds * 98 / 100);
  }
}

}  // namespace luaspy::profile_share_test
