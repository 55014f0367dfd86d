#pragma once
// A heap as a tree of boxes, from the roots inwards: who holds what, in the program's words.
//
// An object is in a box inside the boxes of the objects that dominate it: package.loaded →
// cachemod → entries → {body, id, when}. What one object or one box holds of a class is one box:
// 48,000 tables {body, id, when} are one, and so are the nodes of a linked list or a tree. Where one
// object holds only a few of a class, each has its own box and name: that of the field or variable
// which refers to it.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "heap/heap_analysis.h"

namespace luaspy {

struct HeapBox {
  std::uint32_t outer = 0;  // the number of the box that it is in, smaller than its own
  std::string label;
  Node largest = no_node;  // of the objects in it, the one that retains most; no_node: of the root
  // Of the objects in it, without those in inner boxes. All boxes together have all live bytes.
  std::uint64_t bytes = 0, objects = 0;
};

struct HeapBoxes {
  std::vector<HeapBox> boxes;  // the first one is the root's
  std::unordered_map<Node, std::uint32_t> of;
};

// `analysis` must be a known one. `most_depth`: boxes in each other; what is deeper counts for the
// innermost of them. `wanted`: HeapBoxes::of says where these objects are.
HeapBoxes heap_boxes(const HeapAnalysis& analysis, std::size_t most_depth = 100,
                     const std::unordered_set<Node>& wanted = {});

}  // namespace luaspy
