// Dominators against slow and simple ones, on random graphs.
#include "heap/dominators.h"

#include "unit/heap/random_graph.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace luaspy;

namespace {

// How far each node is from the root without `left_out`; -1: not reachable.
std::vector<int> distances(const Edges& edges, Node left_out) {
  std::vector<int> distance(edges.nodes(), -1);
  std::vector<Node> queue;
  if (left_out != root_node) queue.push_back(root_node), distance[root_node] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const Node to : edges.of(queue[i])) {
      if (to == left_out || distance[to] != -1) continue;
      distance[to] = distance[queue[i]] + 1;
      queue.push_back(to);
    }
  }
  return distance;
}

}  // namespace

TEST_CASE("dominators and retained sizes are those of the definition", "[heap][dominators]") {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const auto nodes = static_cast<Node>(2 + random() % 40);
    const Edges edges = random_graph(random, nodes, random() % (3 * nodes));
    std::vector<std::uint64_t> sizes(nodes);
    for (std::uint64_t& size : sizes) size = random() % 1000;
    const Dominators found = dominators(edges, [&](Node node) { return sizes[node]; });
    const std::vector<int> all = distances(edges, no_node);
    // `over` dominates `node` if the node cannot be reached without it.
    std::vector<std::vector<bool>> dominates(nodes, std::vector<bool>(nodes));
    for (Node over = 0; over < nodes; ++over) {
      const std::vector<int> without = distances(edges, over);
      for (Node node = 0; node < nodes; ++node) dominates[over][node] = all[node] != -1 && without[node] == -1;
    }
    for (Node node = 0; node < nodes; ++node) {
      CHECK(found.is_reachable(node) == (all[node] != -1));
      std::uint64_t retained = 0;
      for (Node other = 0; other < nodes; ++other) retained += dominates[node][other] ? sizes[other] : 0;
      CHECK(found.retained[node] == retained);
      if (all[node] == -1 || node == root_node) {
        CHECK(found.of[node] == no_node);
        continue;
      }
      // Of those that dominate it, the one that all others dominate.
      const Node over = found.of[node];
      REQUIRE(over < nodes);
      CHECK(over != node);
      CHECK(dominates[over][node]);
      for (Node other = 0; other < nodes; ++other)
        CHECK((other == node || !dominates[other][node] || dominates[other][over]));
    }
    REQUIRE(found.order.front() == root_node);
    CHECK(found.order.size() == static_cast<std::size_t>(std::ranges::count_if(all, [](int d) { return d != -1; })));
  }
}

TEST_CASE("a chain of a million nodes needs no deep recursion", "[heap][dominators]") {
  constexpr Node nodes = 1'000'000;
  Edges edges;
  for (Node node = 0; node < nodes; ++node) {
    edges.first.push_back(static_cast<Edges::Position>(edges.to.size()));
    if (node + 1 < nodes) edges.to.push_back(node + 1);
  }
  edges.first.push_back(static_cast<Edges::Position>(edges.to.size()));
  const Dominators found = dominators(edges, [](Node) { return 1; });
  CHECK(found.retained[root_node] == nodes);
  CHECK(found.of[nodes - 1] == nodes - 2);
}
