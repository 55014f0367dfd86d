#include "heap/path_ends.h"

namespace luaspy {

PathEnds::PathEnds(std::span<const Node> before, std::uint32_t half)
    : before_(before), half_(half), length_(before.size()), head_(before.size()) {}

void PathEnds::measure(Node node) {
  std::vector<Node> unknown;
  for (; !is_begin(node) && length_[node] == 0; node = before_[node]) unknown.push_back(node);
  for (auto next = unknown.rbegin(); next != unknown.rend(); node = *next++) {
    length_[*next] = is_begin(node) ? 1 : length_[node] + 1;
    head_[*next] = length_[*next] <= half_ ? *next : head_[node];
  }
}

std::vector<Node> PathEnds::back_from(Node node, std::size_t count) const {
  std::vector<Node> nodes(count);
  for (auto place = nodes.rbegin(); place != nodes.rend(); node = before_[node]) *place++ = node;
  return nodes;
}

PathEnds::Ends PathEnds::of(Node node) {
  if (is_begin(node)) return {};
  measure(node);
  const std::size_t length = length_[node];
  if (length <= std::size_t{2} * half_) return {back_from(node, length), {}, 0};
  return {back_from(head_[node], half_), back_from(node, half_), length - std::size_t{2} * half_};
}

}  // namespace luaspy
