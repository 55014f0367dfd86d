#pragma once
// A page that shows a heap in any browser: the page of flame graphs (output/flamegraph.h), with data
// of this form. What is not named here is as it is there.
//
//   mode, nothing "native", and nothing
//   unit          "bytes"
//   threads       a Lua state each, with tid 0; samples are objects, and runs have their number and
//                 their size. They have classes: four numbers each, class, objects, own bytes,
//                 retained bytes
//   frames        columns: kind (HeapPageTree::Kind), text (a string by number), class (-1: none)
//   heap          what only heaps have:
//     classes     columns: text (a string by number), kind
//     paths       two numbers each: a node, and how the program reaches its largest object (a string
//                 by number). Only of the largest nodes
//     leads       what is said first: node, text each. Of one heap: what holds a tenth of it; of two:
//                 what has grown

#include <ostream>
#include <vector>

#include "heap/heap_analysis.h"
#include "heap/heap_snapshot.h"

namespace luaspy {

struct PageHeap {
  const HeapSnapshot* snapshot = nullptr;
  std::vector<const HeapAnalysis*> states;
};

// One heap; or two, before and after: then the page shows the differences.
void write_heap_page(const std::vector<PageHeap>& heaps, std::ostream& out);

}  // namespace luaspy
