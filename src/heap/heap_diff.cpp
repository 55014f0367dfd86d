#include "heap/heap_diff.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "heap/key_groups.h"

namespace luaspy {
namespace {

using ClassKey = std::pair<ObjectType, std::string_view>;

ClassKey key_of(const ObjectClass& its) { return {its.type, its.name}; }

// Both analyses, seen from one of them.
class Side {
 public:
  Side(const HeapAnalysis& own, const HeapAnalysis& other) : own_(own), other_(other) {
    std::map<ClassKey, ClassNumber> numbers;
    for (ClassNumber i = 0; i < other.classes().size(); ++i) numbers.emplace(key_of(other.classes()[i]), i);
    for (const ObjectClass& each : own.classes()) {
      const auto found = numbers.find(key_of(each));
      class_there_.push_back(found != numbers.end() ? found->second : no_class);
    }
  }

  // The same object on the other side; no_node: there is none.
  Node there(Node node) const {
    if (node == root_node) return root_node;
    const HeapObject object = own_.graph().object(node);
    const std::optional<Node> found = other_.graph().find(object.address);
    if (!found || !other_.is_live(*found) || other_.graph().type(*found) != object.type) return no_node;
    if (class_there_[own_.class_of(node)] == other_.class_of(*found)) return *found;
    // The form of a table may change while it is filled; its holder rarely does.
    const Node holder = own_.dominator(node), its = other_.dominator(*found);
    const bool same_holder = holder == root_node || its == root_node
                                 ? holder == its
                                 : own_.graph().object(holder).address == other_.graph().object(its).address;
    return object.type == ObjectType::table && same_holder ? *found : no_node;
  }

  // Visits objects that only this side has and whose dominator both have.
  void visit_own(const std::function<void(Node holder, Node node)>& visit) const {
    for (Node node = 1; node < own_.graph().nodes(); ++node) {
      if (!own_.is_live(node) || there(node) != no_node) continue;
      const Node holder = own_.dominator(node);
      if (there(holder) != no_node) visit(holder, node);
    }
  }

  ClassNumber class_there(ClassNumber its) const { return class_there_[its]; }
  static constexpr ClassNumber no_class = ~ClassNumber{0};

 private:
  const HeapAnalysis& own_;
  const HeapAnalysis& other_;
  std::vector<ClassNumber> class_there_;
};

std::vector<HeapDiff::ClassChange> compare_classes(const HeapAnalysis& before, const HeapAnalysis& after) {
  std::map<ClassKey, HeapDiff::ClassChange> changes;
  const auto add = [&](const ObjectClass& its, auto change) {
    HeapDiff::ClassChange& each = changes[key_of(its)];
    each.name = its.name;
    each.type = its.type;
    change(each);
  };
  for (const ObjectClass& its : before.classes()) {
    add(its, [&](HeapDiff::ClassChange& each) {
      each.count_before += its.count, each.bytes_before += static_cast<std::int64_t>(its.bytes);
    });
  }
  for (const ObjectClass& its : after.classes()) {
    add(its, [&](HeapDiff::ClassChange& each) {
      each.count_after += its.count, each.bytes_after += static_cast<std::int64_t>(its.bytes);
    });
  }
  std::vector<HeapDiff::ClassChange> all;
  for (const auto& [unused, each] : changes) {
    if (each.count_before != each.count_after || each.grown() != 0) all.push_back(each);
  }
  std::ranges::stable_sort(all, std::greater(), &HeapDiff::ClassChange::grown);
  return all;
}

// A leak in each of many sessions is one leak.
std::vector<HeapDiff::Growth> folded(const HeapAnalysis& after, const std::vector<HeapDiff::Growth>& all) {
  std::vector<Node> holders;
  std::vector<ClassNumber> kinds;
  for (const HeapDiff::Growth& each : all) holders.push_back(each.holder), kinds.push_back(each.its_class);
  ObjectNames names(after);
  std::vector<bool> is_in_group(all.size());
  std::vector<HeapDiff::Growth> result;
  for (const KeyGroup& group : key_groups(after, names, holders, kinds)) {
    HeapDiff::Growth sum;
    sum.holder = group.table;
    sum.holders = static_cast<std::int64_t>(group.members.size());
    sum.after = group.after;
    sum.its_class = kinds[group.members.front()];
    for (const std::size_t i : group.members) {
      is_in_group[i] = true;
      sum.count += all[i].count, sum.bytes += all[i].bytes;
      sum.gone_count += all[i].gone_count, sum.gone_bytes += all[i].gone_bytes;
    }
    result.push_back(std::move(sum));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_in_group[i]) result.push_back(all[i]);
  }
  return result;
}

}  // namespace

HeapDiff difference(const HeapAnalysis& before, const HeapAnalysis& after) {
  HeapDiff diff;
  diff.classes = compare_classes(before, after);
  diff.live_before = static_cast<std::int64_t>(before.all_live().bytes);
  diff.live_after = static_cast<std::int64_t>(after.all_live().bytes);
  const Side now(after, before), then(before, after);
  std::map<std::pair<Node, ClassNumber>, HeapDiff::Growth> growths;
  const auto growth = [&](Node holder, ClassNumber its_class) -> HeapDiff::Growth& {
    HeapDiff::Growth& each = growths[{holder, its_class}];
    each.holder = holder;
    each.its_class = its_class;
    return each;
  };
  now.visit_own([&](Node holder, Node node) {
    HeapDiff::Growth& each = growth(holder, after.class_of(node));
    ++each.count;
    each.bytes += static_cast<std::int64_t>(after.retained(node));
  });
  then.visit_own([&](Node holder, Node node) {
    const ClassNumber its_class = then.class_there(before.class_of(node));
    if (its_class == Side::no_class) return;
    HeapDiff::Growth& each = growth(then.there(holder), its_class);
    ++each.gone_count;
    each.gone_bytes += static_cast<std::int64_t>(before.retained(node));
  });
  for (const auto& [unused, each] : growths) {
    if (each.grown() != 0) diff.growths.push_back(each);
  }
  diff.growths = folded(after, diff.growths);
  std::ranges::stable_sort(diff.growths, std::greater(), &HeapDiff::Growth::grown);
  return diff;
}

}  // namespace luaspy
