#pragma once
// Frames and stacks, each kept once. Stacks are a tree: each is another stack plus a frame, so a deep
// stack costs what is new of it.

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/frame.h"
#include "base/ids.h"

namespace luaspy {

class StackTable {
 public:
  // No two tables have the same one, and a table that is replaced gets another: numbers that it gave before mean
  // nothing to it.
  std::uint64_t identity() const { return identity_.value; }

  struct Node {
    StackId outer = empty_stack;
    FrameId frame{};
  };
  using Frames = ById<FrameId, Frame>;
  // Grows in small pieces: a vector would take three times its size at the moment when it doubles.
  using Nodes = ById<StackId, Node, std::deque<Node>>;

  FrameId intern(const Frame& frame);
  // The same frame as that part of the program.
  FrameId with_part(FrameId frame, Frame::Part part);
  // The stack `outer` plus one frame.
  StackId intern(Node node);
  // Outermost first.
  StackId intern(const Stack& stack);

  const Frames& frames() const { return frames_; }
  const Nodes& nodes() const { return nodes_; }  // nodes()[empty_stack] is the empty stack
  // The frames of a stack, outermost first: their numbers, and what these stand for.
  std::vector<FrameId> ids_of(StackId stack) const;
  Stack frames_of(StackId stack) const;

 private:
  struct Identity {
    Identity() : value(++last) {}
    Identity(const Identity&) : Identity() {}
    Identity& operator=(const Identity&) {
      value = ++last;
      return *this;
    }
    std::uint64_t value;
    static inline std::atomic<std::uint64_t> last = 0;
  };

  Identity identity_;
  Frames frames_;
  std::unordered_multimap<std::size_t, FrameId> frame_index_;  // by hash
  // By frame and part: with_part(); unknown: not asked for yet.
  ById<FrameId, std::array<FrameId, 3>> parts_;
  static constexpr FrameId unknown{~0U};
  Nodes nodes_{1};
  std::unordered_map<std::uint64_t, StackId> node_index_;  // by outer and frame
};

}  // namespace luaspy
