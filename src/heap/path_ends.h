#pragma once
// The ends of paths, of which the middle may be long: a list of 100,000 has a path for each of its elements. Each
// node's length is found once, so that all paths together take the time of one walk.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "heap/object_graph.h"

namespace luaspy {

class PathEnds {
 public:
  // `before`: of each node the one before it, root_node or no_node where the path begins; it must outlive this object.
  // Paths of more than 2 * `half` nodes have `half` at their beginning and at their end.
  PathEnds(std::span<const Node> before, std::uint32_t half);

  struct Ends {
    std::vector<Node> first, last;  // outermost first; `last` is empty if nothing is left out
    std::size_t left_out = 0;       // nodes between them
  };
  // Of the path to `node`, which is its last one.
  Ends of(Node node);

 private:
  void measure(Node node);
  // `node` and those before it, `count` of them, outermost first.
  std::vector<Node> back_from(Node node, std::size_t count) const;
  static bool is_begin(Node node) { return node == root_node || node == no_node; }

  std::span<const Node> before_;
  std::uint32_t half_;
  std::vector<std::uint32_t> length_;  // of the path to each node; 0: not yet known
  std::vector<Node> head_;             // of longer ones: the last node of the first half
};

}  // namespace luaspy
