#include "events/stack_table.h"

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

FrameId StackTable::intern(const Frame& frame) {
  const std::size_t hash = hash_of(frame);
  const auto [first, last] = frame_index_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (frames_[known->second] == frame) return known->second;
  }
  const FrameId id = frames_.add(frame);
  frame_index_.emplace(hash, id);
  return id;
}

FrameId StackTable::with_part(FrameId frame, Frame::Part part) {
  if (frames_[frame].part == part) return frame;
  if (!parts_.has(frame)) parts_.resize(frames_.size(), {unknown, unknown, unknown});
  FrameId& known = parts_[frame][static_cast<std::size_t>(part)];
  if (known != unknown) return known;
  Frame other = frames_[frame];
  other.part = part;
  return known = intern(other);
}

StackId StackTable::intern(Node node) {
  const std::uint64_t key = static_cast<std::uint64_t>(node.outer) << 32 | static_cast<std::uint64_t>(node.frame);
  const auto [place, added] = node_index_.try_emplace(key, nodes_.next());  // emplace() allocates even if it is known
  if (added) nodes_.add(node);
  return place->second;
}

StackId StackTable::intern(const Stack& stack) {
  StackId id = empty_stack;
  for (const Frame& frame : stack) id = intern(Node{id, intern(frame)});
  return id;
}

std::vector<FrameId> StackTable::ids_of(StackId stack) const {
  std::vector<FrameId> ids;
  for (; stack != empty_stack; stack = nodes_[stack].outer) ids.push_back(nodes_[stack].frame);
  std::ranges::reverse(ids);
  return ids;
}

Stack StackTable::frames_of(StackId stack) const {
  Stack frames;
  for (; stack != empty_stack; stack = nodes_[stack].outer) frames.push_back(frames_[nodes_[stack].frame]);
  std::ranges::reverse(frames);
  return frames;
}

}  // namespace luaspy
