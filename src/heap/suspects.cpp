#include "heap/suspects.h"

#include <algorithm>
#include <functional>
#include <map>

namespace luaspy {
namespace {

constexpr std::int64_t least_of_class = 10;  // fewer objects are told one by one
constexpr int most_nested = 8;               // objects that each hold the next one, and are no list or tree

// The object that holds most of what `node` holds, and at least `least` bytes, if nothing else
// there can hold that much; no_node: none does.
Node heaviest(const HeapAnalysis& analysis, Node node, double least) {
  constexpr double most = 0.7;
  const auto all = analysis.dominated(node);
  const auto found = std::ranges::max_element(all, {}, [&](Node each) { return analysis.retained(each); });
  if (found == all.end()) return no_node;
  const auto held = static_cast<double>(analysis.retained(*found));
  const auto whole = static_cast<double>(analysis.retained(node));
  const double rest = whole - held - static_cast<double>(analysis.graph().size(node));
  return held >= least && held >= most * whole && rest < least ? *found : no_node;
}

// Going down from an object as long as one object holds most.
struct Descent {
  Node last = no_node;
  // Where objects of one class begin, or of two by turns, that each hold the next one, up to
  // `last`; and how many they are: a list or a tree, if they are many.
  Node first = no_node;
  ClassNumber other = 0;  // the second of the two classes
  int alike = 1;
};

Descent descend(const HeapAnalysis& analysis, Node top, double least) {
  Descent way = {top, top, analysis.class_of(top), 1};
  Node before = top;
  for (Node next; (next = heaviest(analysis, way.last, least)) != no_node; before = way.last, way.last = next) {
    const ClassNumber its = analysis.class_of(next);
    if (its == analysis.class_of(way.last) || its == analysis.class_of(before)) ++way.alike;
    else way.first = next, way.alike = 1;
    if (way.alike <= 2) way.other = its;
  }
  return way;
}

std::vector<Suspect::Held> largest_first(const std::map<ClassNumber, Suspect::Held>& by_class) {
  std::vector<Suspect::Held> all;
  for (const auto& [unused, each] : by_class) all.push_back(each);
  std::ranges::stable_sort(all, std::greater(), &Suspect::Held::retained);
  return all;
}

// What `holder` holds directly, by class, but for objects of `least` bytes and more.
std::vector<Suspect::Held> held_by(const HeapAnalysis& analysis, Node holder, double least) {
  std::map<ClassNumber, Suspect::Held> by_class;
  for (const Node node : analysis.dominated(holder)) {
    if (static_cast<double>(analysis.retained(node)) >= least) continue;
    Suspect::Held& held = by_class[analysis.class_of(node)];
    held.its_class = analysis.class_of(node);
    ++held.count;
    held.retained += analysis.retained(node);
  }
  return largest_first(by_class);
}

// The same of a list or a tree of objects of one class, or of two: what all of them hold, and they.
std::vector<Suspect::Held> held_by_all(const HeapAnalysis& analysis, Node first, ClassNumber other) {
  std::map<ClassNumber, Suspect::Held> by_class;
  std::vector<Node> open = {first};
  while (!open.empty()) {
    const Node holder = open.back();
    open.pop_back();
    for (const Node node : analysis.dominated(holder)) {
      const bool is_alike = analysis.class_of(node) == analysis.class_of(first) || analysis.class_of(node) == other;
      Suspect::Held& held = by_class[analysis.class_of(node)];
      held.its_class = analysis.class_of(node);
      ++held.count;
      held.retained += is_alike ? analysis.graph().size(node) : analysis.retained(node);
      if (is_alike) open.push_back(node);
    }
  }
  return largest_first(by_class);
}

}  // namespace

std::vector<Suspect> suspects(const HeapAnalysis& analysis, double least_part) {
  const double all = std::max(1.0, static_cast<double>(analysis.all_live().bytes)), least = least_part * all;
  std::vector<Suspect> found;
  std::vector<Node> open = {root_node};  // several large objects are side by side in each of them
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    for (const Suspect::Held& held : held_by(analysis, node, least)) {
      if (static_cast<double>(held.retained) >= least && held.count >= least_of_class)
        found.push_back({node, held.retained, static_cast<double>(held.retained) / all, true, {held}});
    }
    for (const Node child : analysis.dominated(node)) {
      if (static_cast<double>(analysis.retained(child)) < least) continue;
      const Descent way = descend(analysis, child, least);
      const bool splits = std::ranges::any_of(analysis.dominated(way.last), [&](Node each) {
        return static_cast<double>(analysis.retained(each)) >= least;
      });
      if (splits) {
        open.push_back(way.last);
        continue;
      }
      const bool is_list = way.alike > most_nested;
      const Node holder = is_list ? way.first : way.last;
      found.push_back({holder, analysis.retained(holder), static_cast<double>(analysis.retained(holder)) / all, false,
                       is_list ? held_by_all(analysis, holder, way.other) : held_by(analysis, holder, all + 1)});
    }
  }
  std::ranges::stable_sort(found, std::greater(), &Suspect::retained);
  return found;
}

std::vector<const ObjectClass*> largest_classes(const HeapAnalysis& analysis, int most) {
  std::vector<const ObjectClass*> classes;
  for (const ObjectClass& each : analysis.classes()) classes.push_back(&each);
  std::ranges::stable_sort(classes, std::greater(), [](const ObjectClass* each) { return each->retained; });
  classes.resize(std::min(static_cast<std::size_t>(most), classes.size()));
  return classes;
}

std::vector<Node> largest_objects(const HeapAnalysis& analysis, int most) {
  const auto count = static_cast<std::size_t>(most);
  std::vector<Node> largest;
  const auto by_retained = [&](Node one, Node other) { return analysis.retained(one) > analysis.retained(other); };
  for (Node node = 1; node < analysis.graph().nodes(); ++node) {
    if (!analysis.is_live(node) || analysis.graph().type(node) == ObjectType::upvalue) continue;
    largest.push_back(node);
    if (largest.size() < 16 * count) continue;
    std::ranges::nth_element(largest, largest.begin() + static_cast<std::ptrdiff_t>(count), by_retained);
    largest.resize(count);
  }
  std::ranges::sort(largest, by_retained);
  largest.resize(std::min(count, largest.size()));
  return largest;
}

}  // namespace luaspy
