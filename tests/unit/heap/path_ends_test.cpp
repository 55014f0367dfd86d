#include "heap/path_ends.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

namespace luaspy::path_ends_test {

std::vector<Node> walk(const std::vector<Node>& before, Node node) {
  std::vector<Node> all;
  for (; node != root_node && node != no_node; node = before[node]) all.push_back(node);
  std::ranges::reverse(all);
  return all;
}

void check(const std::vector<Node>& before, std::size_t half, PathEnds& paths, Node node) {
  const std::vector<Node> all = walk(before, node);
  const PathEnds::Ends ends = paths.of(node);
  if (all.size() <= 2 * half) {
    CHECK(ends.first == all);
    CHECK(ends.last.empty());
    CHECK(ends.left_out == 0);
    return;
  }
  const auto part = static_cast<std::ptrdiff_t>(half);
  CHECK(ends.first == std::vector<Node>(all.begin(), all.begin() + part));
  CHECK(ends.last == std::vector<Node>(all.end() - part, all.end()));
  CHECK(ends.left_out == all.size() - 2 * half);
}

TEST_CASE("the ends of paths are those that a walk finds, in any order") {
  std::mt19937 random(1);
  for (const Node nodes : {1U, 2U, 7U, 8U, 9U, 60U, 400U}) {
    // Each is reached from one of the few before it, so that paths are long; some are not reached.
    std::vector<Node> before(nodes, no_node);
    for (Node node = 1; node < nodes; ++node)
      if (random() % 50 != 0) before[node] = node - 1 - static_cast<Node>(random() % std::min(node, 3U));
    for (const std::uint32_t half : {1U, 4U, 12U}) {
      PathEnds paths(before, half);
      for (int i = 0; i < 300; ++i) check(before, half, paths, static_cast<Node>(random() % nodes));
    }
  }
}

TEST_CASE("all paths of a long list take the time of one") {
  constexpr Node nodes = 300'000;  // walked one by one, these are 45 thousand million steps
  std::vector<Node> before(nodes, no_node);
  for (Node node = 1; node < nodes; ++node) before[node] = node - 1;
  PathEnds paths(before, 12);
  std::size_t left_out = 0;
  for (Node node = nodes - 1; node != 0; --node) left_out += paths.of(node).left_out;
  CHECK(left_out == std::size_t{nodes - 1 - 24} * (nodes - 24) / 2);
}

}  // namespace luaspy::path_ends_test
