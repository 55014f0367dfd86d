#pragma once
// Frames and stacks, each kept once: a stack is a number. Stacks are a tree: each is another one,
// and a frame more; 0 is the empty one.

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

  // `last` is brought from the stack before to this one: of each frame, outermost first, the stack
  // that ends in it. Comparing frames takes less time than looking them up, and the last stack of a
  // thread mostly is nearly the next one.
  void intern(const Stack& stack, std::vector<StackId>& last);
  FrameId intern(const Frame& frame);
  // The stack `outer` with a frame more.
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
