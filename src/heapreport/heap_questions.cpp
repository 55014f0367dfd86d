#include "heapreport/heap_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "heap/key_groups.h"
#include "heap/object_names.h"
#include "heap/suspects.h"
#include "heapdump/heap_words.h"

namespace luaspy {
namespace {

class Answers {
 public:
  Answers(const HeapAnalysis& analysis, int lines, const Paint& paint)
      : analysis_(analysis), names_(analysis), lines_(static_cast<std::size_t>(lines)), paint_(paint) {}

  std::string path(const std::string& what) {
    std::string text;
    for (const Node node : some(find(what))) text += path_of(node);
    return text;
  }

  std::string retained_by(const std::string& what) {
    std::string text;
    const std::vector<Node> nodes = find(what);
    if (nodes.empty()) return text;
    text = heading(fmt::format("{} hold{} {}", what, nodes.size() == 1 ? "s" : "", size_text(retained(nodes))));
    add_held(text, nodes, 1);
    return text;
  }

  std::string of_class(const std::string& what) {
    std::optional<ClassNumber> number = find_class(what);
    if (!number) {
      const std::vector<Node> all = find_objects(what);
      if (all.empty() || !analysis_.is_live(all.front())) return "";
      number = analysis_.class_of(all.front());
    }
    const std::vector<Node> nodes = objects_of(*number);
    const ObjectClass& its = analysis_.classes()[*number];
    std::string text = heading(fmt::format("{}: {} of their own, {} retained",
                                           objects_text(its, static_cast<std::int64_t>(nodes.size())),
                                           size_text(its.bytes), size_text(its.retained)));
    add_holders(text, nodes);
    text += '\n' + paint_(Ink::heading, fmt::format("{:>10} {:>10}  {}", "Retained", "Own", "Object")) + '\n';
    for (const Node node : some(nodes)) text += object_line(node);
    return text;
  }

  std::string object(const std::string& what) {
    std::string text;
    // "string" is a library and a class: the library is an object.
    std::vector<Node> nodes = find_objects(what);
    if (nodes.empty()) nodes = find(what);
    for (const Node node : some(nodes)) {
      const HeapObject object = analysis_.graph().object(node);
      const bool is_live = analysis_.is_live(node);
      text += heading(fmt::format("{} at {:#x}", name(object.type), object.address));
      text += fmt::format("  {}\n", names_.text(object, verbose_limits));
      if (is_live) {
        text += fmt::format("  class {}; {} of its own, {} retained\n",
                            analysis_.classes()[analysis_.class_of(node)].name, size_text(object.size),
                            size_text(analysis_.retained(node)));
        text += path_of(node);
      } else {
        text += fmt::format("  {}; nothing refers to it any more, and the collector has not freed it yet\n",
                            size_text(object.size));
      }
      add_referrers(text, node);
    }
    return text;
  }

 private:
  std::string heading(const std::string& text) const { return paint_(Ink::strong, text) + '\n'; }

  // Live objects of the class, the largest first; or the object, which may be dead if it is given by its address.
  std::vector<Node> find(const std::string& what) {
    const std::optional<ClassNumber> number = find_class(what);
    return number ? objects_of(*number) : find_objects(what);
  }

  // By its number in the report ("#3"), its name, or its name as the report has it ("Account (table)"). Of several with
  // the name, the one that retains most.
  std::optional<ClassNumber> find_class(const std::string& what) const {
    const std::vector<ObjectClass>& classes = analysis_.classes();
    const std::vector<const ObjectClass*> largest = largest_classes(analysis_, static_cast<int>(classes.size()));
    const auto number_of = [&](const ObjectClass* its) { return static_cast<ClassNumber>(its - classes.data()); };
    std::size_t place = 0;
    if (what.starts_with('#') &&
        std::from_chars(what.data() + 1, what.data() + what.size(), place).ptr == what.data() + what.size())
      return place >= 1 && place <= largest.size() ? std::optional(number_of(largest[place - 1])) : std::nullopt;
    const auto found = std::ranges::find_if(largest, [&](const ObjectClass* its) {
      return its->count != 0 && (its->name == what || class_text(its->name, its->type) == what);
    });
    return found != largest.end() ? std::optional(number_of(*found)) : std::nullopt;
  }

  // By its address, or by the path that the report has for it, which several objects may have.
  std::vector<Node> find_objects(const std::string& what) {
    if (!what.starts_with("0x")) return names_.at_path(what);
    Address address = 0;
    const auto [end, failed] = std::from_chars(what.data() + 2, what.data() + what.size(), address, 16);
    const std::optional<Node> node = failed == std::errc() && end == what.data() + what.size()
                                         ? analysis_.graph().find(address)
                                         : std::nullopt;
    return node ? std::vector<Node>{*node} : std::vector<Node>{};
  }

  std::vector<Node> objects_of(ClassNumber its) const {
    std::vector<Node> nodes;
    for (Node node = 1; node < analysis_.graph().nodes(); ++node) {
      if (analysis_.is_live(node) && analysis_.class_of(node) == its) nodes.push_back(node);
    }
    std::ranges::stable_sort(nodes, std::greater(), [&](Node node) { return analysis_.retained(node); });
    return nodes;
  }

  // Who holds them.
  void add_holders(std::string& text, const std::vector<Node>& nodes) {
    std::map<Node, Total> held_by;
    for (const Node node : nodes) held_by[analysis_.dominator(node)].add(analysis_.retained(node));
    std::vector<Node> holders;
    std::vector<Total> held;
    for (const auto& [holder, total] : held_by) holders.push_back(holder), held.push_back(total);
    struct Row {
      Total held;
      Node holder = no_node;
      const KeyGroup* group = nullptr;  // instead of it
    };
    std::vector<Row> rows;
    std::vector<bool> is_in_group(holders.size());
    const std::vector<KeyGroup> groups = key_groups(analysis_, names_, holders,
                                                    std::vector<ClassNumber>(holders.size()));
    for (const KeyGroup& group : groups) {
      Row& row = rows.emplace_back(Row{{}, no_node, &group});
      for (const std::size_t i : group.members) {
        is_in_group[i] = true;
        row.held.count += held[i].count, row.held.bytes += held[i].bytes;
      }
    }
    for (std::size_t i = 0; i < holders.size(); ++i) {
      if (!is_in_group[i]) rows.push_back({held[i], holders[i]});
    }
    std::ranges::stable_sort(rows, std::greater(), [](const Row& row) { return row.held.bytes; });
    text += paint_(Ink::heading, fmt::format("{:>10} {:>10}  {}", "Retained", "Objects", "Held by")) + '\n';
    for (std::size_t i = 0; i < std::min(lines_, rows.size()); ++i)
      text += fmt::format("{:>10} {:>10}  {}\n", size_text(rows[i].held.bytes), count_text(rows[i].held.count),
                          holder_line(rows[i].holder, rows[i].group));
  }
  std::string holder_line(Node holder, const KeyGroup* group) {
    if (group != nullptr)
      return group_text(names_, group->table, group->after, static_cast<std::int64_t>(group->members.size()));
    return holder == root_node ? "several objects" : names_.path(holder);
  }

  std::vector<Node> some(std::vector<Node> nodes) const {
    nodes.resize(std::min(lines_, nodes.size()));
    return nodes;
  }

  std::uint64_t retained(const std::vector<Node>& nodes) const {
    std::uint64_t sum = 0;
    for (const Node node : nodes) sum += analysis_.retained(node);
    return sum;
  }

  std::string object_line(Node node) {
    return fmt::format("{:>10} {:>10}  {}\n", size_text(analysis_.retained(node)),
                       size_text(analysis_.graph().size(node)), object_text(analysis_, names_, node));
  }

  // The path, and then a line for each object on the way.
  std::string path_of(Node node) {
    if (!analysis_.is_live(node)) return "  nothing refers to it\n";
    std::string text = "  " + names_.path(node) + '\n', of_upvalue;
    for (const ObjectNames::Stage& stage : names_.stages(node)) {
      if (stage.node == no_node) {
        text += fmt::format("{:>14}{}\n", "", stage.text);
        continue;
      }
      const HeapObject object = analysis_.graph().object(stage.node);
      // An upvalue is told together with its value.
      if (object.type == ObjectType::upvalue && stage.node != node) {
        of_upvalue = stage.alone();
        continue;
      }
      std::string step = std::exchange(of_upvalue, {}) + stage.alone();
      if (step.empty()) step = "globals";
      text += fmt::format("{:>14}  {} = {} at {:#x}\n", size_text(analysis_.retained(stage.node)), step,
                          names_.text(object), object.address);
    }
    return text;
  }

  void add_referrers(std::string& text, Node node) {
    std::vector<Node> referrers;
    for (Node from = 1; from < analysis_.graph().nodes(); ++from) {
      if (std::ranges::find(analysis_.graph().references(from), node) != analysis_.graph().references(from).end())
        referrers.push_back(from);
    }
    text += fmt::format("  {} to it\n",
                        referrers.size() == 1
                            ? "1 object refers"
                            : counted(static_cast<std::int64_t>(referrers.size()), "object") + " refer");
    for (const Node from : some(referrers))
      text += fmt::format("    {}{}\n", analysis_.is_live(from) ? names_.path(from) : "a dead object",
                          names_.step(from, node));
  }

  // What these objects hold, by class, and what those hold.
  void add_held(std::string& text, const std::vector<Node>& nodes, int depth) {
    constexpr int deepest = 4;
    constexpr double least = 0.05;  // of what is above
    std::map<ClassNumber, std::vector<Node>> by_class;
    for (const Node node : nodes) {
      for (const Node held : analysis_.dominated(node)) by_class[analysis_.class_of(held)].push_back(held);
    }
    std::vector<std::pair<std::uint64_t, ClassNumber>> order;
    for (const auto& [its_class, held] : by_class) order.emplace_back(retained(held), its_class);
    std::ranges::sort(order, std::greater());
    const auto all = static_cast<double>(retained(nodes));
    for (std::size_t i = 0; i < std::min(lines_, order.size()); ++i) {
      if (static_cast<double>(order[i].first) < least * all) break;
      const std::vector<Node>& held = by_class[order[i].second];
      text += fmt::format("{:>{}} {}\n", size_text(order[i].first), 10 + 2 * depth,
                          objects_text(analysis_.classes()[order[i].second], static_cast<std::int64_t>(held.size())));
      if (depth < deepest) add_held(text, held, depth + 1);
    }
  }

  const HeapAnalysis& analysis_;
  ObjectNames names_;
  std::size_t lines_;
  const Paint& paint_;
};

}  // namespace

std::string answers(const HeapAnalysis& analysis, const HeapQuestions& questions, int lines, const Paint& paint) {
  Answers asked(analysis, lines, paint);
  std::string text;
  if (!questions.path.empty()) text += asked.path(questions.path);
  if (!questions.retained_by.empty()) text += asked.retained_by(questions.retained_by);
  if (!questions.of_class.empty()) text += asked.of_class(questions.of_class);
  if (!questions.object.empty()) text += asked.object(questions.object);
  return text;
}

}  // namespace luaspy
