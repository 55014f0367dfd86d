#pragma once
// What has grown between two snapshots of one process.

#include <string>
#include <vector>

#include "heap/heap_analysis.h"

namespace luaspy {

struct HeapDiff {
  // A class by its name, in both.
  struct ClassChange {
    std::string name;
    ObjectType type = ObjectType::table;
    std::int64_t count_before = 0, count_after = 0;
    std::int64_t bytes_before = 0, bytes_after = 0;
    std::int64_t grown() const { return bytes_after - bytes_before; }
  };
  // Objects that only the later one has, held by an object that both have: what a leak looks like.
  struct Growth {
    Node holder = no_node;  // in the later one; root_node: held by several objects
    // If not 1: they are held by so many objects whose paths differ in one key, that of the table `holder`, and go on
    // with `after`.
    std::int64_t holders = 1;
    std::string after{};
    ClassNumber its_class = 0;
    std::int64_t count = 0;
    std::int64_t bytes = 0;  // retained by them
    // The same among what only the earlier one has: what the holder has let go.
    std::int64_t gone_count = 0, gone_bytes = 0;
    std::int64_t grown() const { return bytes - gone_bytes; }
  };
  std::vector<ClassChange> classes;              // that changed, the most grown first
  std::vector<Growth> growths;                   // the most grown first
  std::int64_t live_before = 0, live_after = 0;  // bytes
};

// An object is the same in both if it has the same address, type and class.
HeapDiff difference(const HeapAnalysis& before, const HeapAnalysis& after);

}  // namespace luaspy
