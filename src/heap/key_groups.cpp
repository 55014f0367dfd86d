#include "heap/key_groups.h"

#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace luaspy {
namespace {

constexpr std::size_t most_alone = 3;
constexpr int most_tables = 3;  // tables above an object whose key may be the one that differs
constexpr int most_steps = 8;   // from such a table to the object

struct Place {
  Node table = no_node;
  std::string after;
};

// The n-th table above the object, from 1 on, and how its path goes on from that table's entry.
std::optional<Place> table_above(const HeapAnalysis& analysis, ObjectNames& names, Node node, int n) {
  std::string after;
  for (int steps = 0; steps < most_steps && node != root_node && node != no_node; ++steps) {
    const Node before = analysis.before(node);
    if (before == root_node || before == no_node) return std::nullopt;
    if (analysis.graph().type(before) == ObjectType::thread) return std::nullopt;  // its slots are too many to compare
    if (analysis.graph().type(before) == ObjectType::table && --n == 0) return Place{before, std::move(after)};
    after.insert(0, names.step(before, node));
    node = before;
  }
  return std::nullopt;
}

}  // namespace

std::vector<KeyGroup> key_groups(const HeapAnalysis& analysis, ObjectNames& names, const std::vector<Node>& nodes,
                                 const std::vector<ClassNumber>& kinds) {
  std::vector<KeyGroup> groups;
  std::vector<std::size_t> open(nodes.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  for (int n = 1; n <= most_tables && open.size() > most_alone; ++n) {
    std::map<std::tuple<Node, std::string, ClassNumber, ClassNumber>, std::vector<std::size_t>> alike;
    std::vector<std::size_t> left;
    for (const std::size_t i : open) {
      const std::optional<Place> place = table_above(analysis, names, nodes[i], n);
      if (place) alike[{place->table, place->after, analysis.class_of(nodes[i]), kinds[i]}].push_back(i);
      else left.push_back(i);
    }
    for (auto& [key, members] : alike) {
      if (members.size() > most_alone) groups.push_back({std::get<0>(key), std::get<1>(key), std::move(members)});
      else left.insert(left.end(), members.begin(), members.end());
    }
    open = std::move(left);
  }
  return groups;
}

}  // namespace luaspy
