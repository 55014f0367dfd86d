#pragma once
// Paths that differ in one key: sessions.a7.log, sessions.b2.log, …: one line for people.

#include <string>
#include <vector>

#include "heap/object_names.h"

namespace luaspy {

struct KeyGroup {
  Node table = no_node;              // whose key differs
  std::string after;                 // how each path goes on: ".log"; "" if the object is the entry itself
  std::vector<std::size_t> members;  // indexes of `nodes`, more than 3
};

// What is left of `nodes` has no group. `kinds`: of each node; nodes of different kinds are in different groups.
std::vector<KeyGroup> key_groups(const HeapAnalysis& analysis, ObjectNames& names, const std::vector<Node>& nodes,
                                 const std::vector<ClassNumber>& kinds);
}  // namespace luaspy
