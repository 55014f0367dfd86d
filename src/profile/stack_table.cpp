#include "profile/stack_table.h"

#include <algorithm>
#include <functional>

namespace luaspy {
namespace {

void mix(std::size_t& hash, std::size_t value) { hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2); }

std::size_t hash_of(const Frame& frame) {
  std::size_t hash = std::hash<std::string>()(frame.name);
  mix(hash, std::hash<std::string>()(frame.file));
  mix(hash, static_cast<std::size_t>(frame.line_defined) << 32 | static_cast<std::uint32_t>(frame.line));
  mix(hash, frame.prototype);
  mix(hash, static_cast<std::size_t>(frame.kind) << 3 | static_cast<std::size_t>(frame.part) << 1 |
                static_cast<std::size_t>(frame.line_is_near));
  return hash;
}

}  // namespace

StackTable::FrameId StackTable::intern(const Frame& frame) {
  const std::size_t hash = hash_of(frame);
  const auto [first, last] = frame_index_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (frames_[known->second] == frame) return known->second;
  }
  const auto id = static_cast<FrameId>(frames_.size());
  frames_.push_back(frame);
  frame_index_.emplace(hash, id);
  return id;
}

StackTable::StackId StackTable::intern(Node node) {
  const auto [place, added] = node_index_.emplace(std::uint64_t{node.outer} << 32 | node.frame,
                                                  static_cast<StackId>(nodes_.size()));
  if (added) nodes_.push_back(node);
  return place->second;
}

void StackTable::intern(const Stack& stack, std::vector<StackId>& last) {
  std::size_t depth = 0;
  while (depth < last.size() && depth < stack.size() && frames_[nodes_[last[depth]].frame] == stack[depth]) ++depth;
  last.resize(depth);
  for (; depth < stack.size(); ++depth)
    last.push_back(intern(Node{last.empty() ? 0 : last.back(), intern(stack[depth])}));
}

std::vector<StackTable::FrameId> StackTable::stack(StackId id) const {
  std::vector<FrameId> frames;
  for (; id != 0; id = nodes_[id].outer) frames.push_back(nodes_[id].frame);
  std::ranges::reverse(frames);
  return frames;
}

}  // namespace luaspy
