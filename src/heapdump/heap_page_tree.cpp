#include "heapdump/heap_page_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "heapdump/heap_words.h"

namespace luaspy {
namespace {

void operator+=(HeapPageTree::Amount& sum, const HeapPageTree::Amount& amount) {
  sum.objects += amount.objects;
  sum.bytes += amount.bytes;
}

std::uint64_t larger(const HeapPageTree::Node& node) { return std::max(node.total[0].bytes, node.total[1].bytes); }

}  // namespace

HeapPageTree::Kind HeapPageTree::kind_of(ObjectType type) {
  switch (type) {
    case ObjectType::table:
      return Kind::table;
    case ObjectType::string:
      return Kind::string;
    case ObjectType::userdata:
    case ObjectType::cdata:
      return Kind::userdata;
    case ObjectType::thread:
      return Kind::coroutine;
    default:
      return Kind::function;  // and what belongs to one: its code, upvalues, traces
  }
}

std::uint32_t HeapPageTree::class_number(const ObjectClass& its) {
  const auto [place, added] = class_numbers_.try_emplace({its.type, its.name},
                                                         static_cast<std::uint32_t>(classes_.size()));
  if (added) classes_.push_back({printable(class_text(its.name, its.type)), kind_of(its.type)});
  return place->second;
}

std::uint32_t HeapPageTree::frame_number(const std::string& text, std::uint32_t its_class) {
  const auto [place, added] = frame_numbers_.try_emplace({its_class, text}, static_cast<std::uint32_t>(frames_.size()));
  if (added) frames_.push_back({text, its_class});
  return place->second;
}

// The class is that of the last snapshot which has the box.
std::uint32_t HeapPageTree::child(std::uint32_t outer, const std::string& label, std::uint32_t its_class,
                                  std::uint32_t state) {
  const std::uint32_t number = label_numbers_.try_emplace(label, static_cast<std::uint32_t>(label_numbers_.size()))
                                   .first->second;
  const auto [place, added] = node_numbers_.try_emplace(std::uint64_t{outer} << 32 | number,
                                                        static_cast<std::uint32_t>(nodes_.size()));
  if (added) {
    nodes_.emplace_back();
    nodes_.back().outer = outer, nodes_.back().state = state;
  }
  nodes_[place->second].frame = frame_number(label, its_class);
  return place->second;
}

std::uint32_t HeapPageTree::state_root(std::uint32_t state, const std::string& name, bool is_alone) {
  return is_alone ? 0 : child(0, name, no_class, state);
}

std::vector<std::uint32_t> HeapPageTree::add(const HeapBoxes& boxes, const std::vector<std::uint32_t>& classes,
                                             std::uint32_t root, std::size_t snapshot) {
  std::vector<std::uint32_t> numbers(boxes.boxes.size(), root);
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    const HeapBox& box = boxes.boxes[i];
    numbers[i] = child(numbers[box.outer], box.label, classes[i], nodes_[root].state);
    nodes_[numbers[i]].own[snapshot] += {box.objects, box.bytes};
    nodes_[numbers[i]].largest[snapshot] = box.largest;
  }
  return numbers;
}

void HeapPageTree::sum() {
  for (Node& node : nodes_) node.total = node.own;
  for (std::size_t i = nodes_.size() - 1; i > 0; --i) {
    for (const std::size_t snapshot : {std::size_t{0}, std::size_t{1}})
      nodes_[nodes_[i].outer].total[snapshot] += nodes_[i].total[snapshot];
  }
}

HeapPageTree::Joined HeapPageTree::join_small(double least, std::size_t most, std::size_t snapshots) {
  sum();
  Joined joined;
  joined.least = static_cast<std::uint64_t>(least * static_cast<double>(larger(nodes_.front())));
  if (nodes_.size() > most) {
    std::vector<std::uint64_t> sizes;
    for (const Node& node : nodes_) sizes.push_back(larger(node));
    std::ranges::nth_element(sizes, sizes.begin() + static_cast<std::ptrdiff_t>(most), std::greater());
    joined.least = std::max(joined.least, sizes[most] + 1);
  }
  // A box is at least as large as those in it, so what is left is a tree.
  std::vector<Node> all = std::move(nodes_);
  nodes_.clear();
  nodes_.push_back(all.front());
  now_.assign(all.size(), 0);
  std::vector<bool> kept(all.size(), false);
  std::map<std::uint32_t, std::pair<Node, std::uint64_t>> small;  // by the box they are in, with how many they are
  kept[0] = true;
  for (std::uint32_t i = 1; i < all.size(); ++i) {
    Node& node = all[i];
    const bool is_inside = kept[node.outer];
    node.outer = now_[node.outer];
    kept[i] = is_inside && (larger(node) >= joined.least || frames_[node.frame].its_class == no_class);
    now_[i] = kept[i] ? static_cast<std::uint32_t>(nodes_.size()) : node.outer;
    if (kept[i]) {
      nodes_.push_back(node);
      continue;
    }
    auto& [of, count] = small[node.outer];
    of.outer = node.outer;
    of.state = node.state;
    for (const std::size_t snapshot : {std::size_t{0}, std::size_t{1}}) of.own[snapshot] += node.own[snapshot];
    ++count;
    ++joined.boxes;
    joined.bytes += node.own[snapshots - 1].bytes;
  }
  for (auto& [outer, its] : small) {
    auto& [node, count] = its;
    node.frame = frame_number(fmt::format("({} smaller)", count_text(static_cast<std::int64_t>(count))), no_class);
    nodes_.push_back(node);
  }
  sum();
  return joined;
}

std::uint32_t HeapPageTree::inside(std::uint32_t outer, std::uint32_t its_class) const {
  std::uint32_t found = outer;
  for (std::uint32_t i = outer + 1; i < nodes_.size(); ++i) {
    if (nodes_[i].outer != outer || frames_[nodes_[i].frame].its_class != its_class) continue;
    if (found == outer || larger(nodes_[i]) > larger(nodes_[found])) found = i;
  }
  return found;
}

}  // namespace luaspy
