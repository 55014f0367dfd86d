#pragma once
// Where memory gathers: the objects that hold much of the heap, each as near as possible to what it
// holds (Eclipse Memory Analyzer calls that point the accumulation point).

#include <vector>

#include "heap/heap_analysis.h"

namespace luaspy {

struct Suspect {
  // Going further down from it, no single object holds most of it any more; or it is the first one
  // of a list or a tree, where each object holds the next of its class.
  Node holder = no_node;
  std::uint64_t retained = 0;  // bytes
  double part = 0;             // of all live bytes
  // Not all that `holder` holds, but what it holds of one class.
  bool is_class = false;
  // What it holds directly, by class, the most bytes first; of a list or a tree: what all its
  // objects hold, and they.
  struct Held {
    ClassNumber its_class = 0;
    std::int64_t count = 0;
    std::uint64_t retained = 0;
  };
  std::vector<Held> held;
};

// Those that hold at least `least` of all live bytes, the largest first.
std::vector<Suspect> suspects(const HeapAnalysis& analysis, double least = 0.1);

// The classes and the live objects that retain the most, the largest first; at most `most`.
std::vector<const ObjectClass*> largest_classes(const HeapAnalysis& analysis, int most);
std::vector<Node> largest_objects(const HeapAnalysis& analysis, int most);

}  // namespace luaspy
