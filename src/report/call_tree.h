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
  std::vector<Node> nodes;  // nodes[0] stands for all: it is no function
};
// Stacks of the same functions are one.
CallTree call_tree(const Profile& profile, const FunctionTable& functions, By by);

// Calls with nothing beside them are one line; those that cost less than `least` % of all are
// counted only.
std::string call_tree_text(const CallTree& tree, const FunctionTable& functions, double least, const TextStyle& style);

}  // namespace luaspy
