#pragma once
// Graphs for algorithms: any node may refer to any other one, to itself, and several times.

#include <random>
#include <vector>

#include "heap/object_graph.h"

namespace luaspy {

inline Edges random_graph(std::mt19937& random, Node nodes, std::size_t references) {
  std::vector<std::vector<Node>> of(nodes);
  for (std::size_t i = 0; i < references; ++i) of[random() % nodes].push_back(static_cast<Node>(random() % nodes));
  Edges edges;
  for (const std::vector<Node>& each : of) {
    edges.first.push_back(static_cast<Edges::Position>(edges.to.size()));
    edges.to.insert(edges.to.end(), each.begin(), each.end());
  }
  edges.first.push_back(static_cast<Edges::Position>(edges.to.size()));
  return edges;
}

}  // namespace luaspy
