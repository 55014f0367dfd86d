#pragma once
// Frames and stacks, each kept once: a stack is a number. Stacks are a tree: each is another stack
// plus a frame; 0 is the empty stack.

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/frame.h"

namespace luaspy {

class StackTable {
 public:
  using FrameId = std::uint32_t;
  using StackId = std::uint32_t;

  struct Node {
    StackId outer = 0;
    FrameId frame = 0;
  };

  // Updates `last` from the previous stack to this one. It has, for each frame, outermost first,
  // the stack that ends in that frame. Comparing frames takes less time than looking them up, and
  // successive stacks of a thread are usually similar.
  void intern(const Stack& stack, std::vector<StackId>& last);
  FrameId intern(const Frame& frame);
  // The stack `outer` plus one frame.
  StackId intern(Node node);

  const std::vector<Frame>& frames() const { return frames_; }
  const std::deque<Node>& nodes() const { return nodes_; }  // nodes()[0] is the empty stack
  // The frames of a stack, outermost first.
  std::vector<FrameId> stack(StackId id) const;

 private:
  std::vector<Frame> frames_;
  std::unordered_multimap<std::size_t, FrameId> frame_index_;  // by hash
  std::deque<Node> nodes_{1};
  std::unordered_map<std::uint64_t, StackId> node_index_;  // by outer and frame
};

}  // namespace luaspy
