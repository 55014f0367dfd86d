#pragma once
// How a program reaches its objects: for each, a path from the root whose steps cost least.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "heap/object_graph.h"

namespace luaspy {

struct PathStart {
  Node node = no_node;  // referred to by the root
  std::uint8_t cost = 1;
};

inline constexpr std::uint8_t most_step_cost = 15;

// From each node, the one before it on its path; root_node: the path begins with it; no_node: of
// the root, and not reachable. `step_cost`: of every reference of a node, 1 to most_step_cost. Of
// paths that cost the same, one that begins with an earlier start. Takes 8 bytes for each node
// while it works.
std::vector<Node> shortest_paths(const Edges& edges, std::span<const PathStart> starts,
                                 const std::function<std::uint8_t(Node)>& step_cost);

}  // namespace luaspy
