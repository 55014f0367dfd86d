#include "heap/shortest_paths.h"

#include <algorithm>
#include <array>
#include <limits>

namespace luaspy {

// R. Dial, "Algorithm 360: Shortest-path forest with topological ordering" (1969): as no step costs
// much, what is to be visited next is kept in a ring of lists, one for each cost.
std::vector<Node> shortest_paths(const Edges& edges, std::span<const PathStart> starts,
                                 const std::function<std::uint8_t(Node)>& step_cost) {
  constexpr std::uint32_t unknown = std::numeric_limits<std::uint32_t>::max();
  std::vector<Node> before(edges.nodes(), no_node);
  std::vector<std::uint32_t> costs(edges.nodes(), unknown);
  std::array<std::vector<Node>, most_step_cost + 1> ring;
  std::size_t open = 0;
  const auto reach = [&](Node node, Node from, std::uint32_t cost) {
    if (node == root_node || costs[node] <= cost) return;
    costs[node] = cost, before[node] = from;
    ring[cost % ring.size()].push_back(node);
    ++open;
  };
  for (const PathStart& start : starts) reach(start.node, root_node, std::min(start.cost, most_step_cost));
  for (std::uint32_t cost = 0; open != 0; ++cost) {
    std::vector<Node>& now = ring[cost % ring.size()];
    for (const Node node : now) {
      if (costs[node] != cost) continue;  // it was reached for less
      const std::uint32_t to_cost = cost + std::clamp<std::uint32_t>(step_cost(node), 1, most_step_cost);
      for (const Node to : edges.of(node)) reach(to, node, to_cost);
    }
    open -= now.size();
    now.clear();
  }
  return before;
}

}  // namespace luaspy
