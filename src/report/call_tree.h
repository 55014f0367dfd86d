#pragma once
// The calls of a profile as a tree, from the outermost function inwards.

#include "report/text_style.h"

namespace luaspy {

struct CallTree {
  struct Node {
    std::uint32_t function = 0;  // index into FunctionTable
    Cost cost;
    std::vector<std::uint32_t> inner;  // nodes, the most expensive first
  };
  std::vector<Node> nodes;  // nodes[0] is the root, not a function
};
// Stacks with the same functions are merged.
CallTree call_tree(const Profile& profile, const FunctionTable& functions, By by);

// A chain of calls without siblings is one line; calls that cost less than `least` % of the total
// are only counted.
std::string call_tree_text(const CallTree& tree, const FunctionTable& functions, double least, const TextStyle& style);

}  // namespace luaspy
