#pragma once
// Who holds what: a node's immediate dominator is the last one that every path from the root to it
// has in common. If the dominator went away, so would the node. A node's retained size is its own
// and that of all nodes it dominates: what would become free with it.
//
// L. Georgiadis, R. Tarjan, "Dominators and verification" and L. Georgiadis, "Linear-Time
// Algorithms for Dominators and Related Problems" (2005): SEMI-NCA. O(n²) at worst, in practice
// close to linear. Takes 32 bytes for each node and 4 for each reference while it works.

#include <cstdint>
#include <span>
#include <vector>

#include "heap/object_graph.h"

namespace luaspy {

struct Dominators {
  std::vector<Node> of;                 // the immediate dominator of each node; no_node: of the root, and not reachable
  std::vector<Node> order;              // every reachable node, the root first, dominators before what they dominate
  std::vector<std::uint64_t> retained;  // bytes, of each node; 0: not reachable

  bool is_reachable(Node node) const { return node == root_node || of[node] != no_node; }
};

// `size_of`: of a node, bytes. `told`, if set, is called now and then: how much is done, from 0 to 1.
Dominators dominators(const Edges& edges, const std::function<std::uint64_t(Node)>& size_of,
                      const std::function<void(double part)>& told = {});

}  // namespace luaspy
