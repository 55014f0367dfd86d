// Paths against those of a slow and simple algorithm, on random graphs.
#include "heap/shortest_paths.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>

#include "unit/heap/random_graph.h"

using namespace luaspy;

namespace {

constexpr std::uint32_t unreachable = std::numeric_limits<std::uint32_t>::max();

// Bellman and Ford: steps are tried until nothing gets cheaper.
std::vector<std::uint32_t> least_costs(const Edges& edges, const std::vector<PathStart>& starts,
                                       const std::vector<std::uint8_t>& steps) {
  std::vector<std::uint32_t> costs(edges.nodes(), unreachable);
  for (const PathStart& start : starts) costs[start.node] = std::min<std::uint32_t>(costs[start.node], start.cost);
  for (bool changed = true; changed;) {
    changed = false;
    for (Node node = 1; node < edges.nodes(); ++node) {
      if (costs[node] == unreachable) continue;
      for (const Node to : edges.of(node)) {
        if (to == root_node || costs[to] <= costs[node] + steps[node]) continue;
        costs[to] = costs[node] + steps[node];
        changed = true;
      }
    }
  }
  return costs;
}

}  // namespace

TEST_CASE("a path costs as little as any", "[heap][paths]") {
  std::mt19937 random(8);
  for (int round = 0; round < 400; ++round) {
    const auto nodes = static_cast<Node>(2 + random() % 60);
    const Edges edges = random_graph(random, nodes, random() % (3 * nodes));
    std::vector<std::uint8_t> steps(nodes);
    for (std::uint8_t& step : steps) step = static_cast<std::uint8_t>(1 + random() % most_step_cost);
    std::vector<PathStart> starts;
    for (Node i = random() % 4; i > 0; --i)
      starts.push_back(
          {static_cast<Node>(1 + random() % (nodes - 1)), static_cast<std::uint8_t>(1 + random() % most_step_cost)});
    const std::vector<std::uint32_t> costs = least_costs(edges, starts, steps);
    const std::vector<Node> before = shortest_paths(edges, starts, [&](Node node) { return steps[node]; });
    CHECK(before[root_node] == no_node);
    for (Node node = 1; node < nodes; ++node) {
      REQUIRE((before[node] == no_node) == (costs[node] == unreachable));
      if (before[node] == no_node) continue;
      if (before[node] == root_node) {
        CHECK(std::ranges::any_of(
            starts, [&](const PathStart& start) { return start.node == node && start.cost == costs[node]; }));
        continue;
      }
      CHECK(costs[node] == costs[before[node]] + steps[before[node]]);
      CHECK(std::ranges::count(edges.of(before[node]), node) > 0);
    }
  }
}

TEST_CASE("of equal paths, the one from the first start is taken", "[heap][paths]") {
  const Edges diamond = {{0, 2, 3, 4, 4}, {1, 2, 3, 3}};
  const auto one = [](Node) -> std::uint8_t { return 1; };
  CHECK(shortest_paths(diamond, std::vector<PathStart>{{1, 1}, {2, 1}}, one)[3] == 1);
  CHECK(shortest_paths(diamond, std::vector<PathStart>{{2, 1}, {1, 1}}, one)[3] == 2);
  CHECK(shortest_paths(diamond, std::vector<PathStart>{{1, 2}, {2, 1}}, one)[3] == 2);
}
