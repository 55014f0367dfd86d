#include "heapreport/heap_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <utility>

#include "heap/object_names.h"
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
    const std::vector<Node> nodes = find(what);
    if (nodes.empty()) return "";
    const ObjectClass& its = analysis_.classes()[analysis_.class_of(nodes.front())];
    std::string text = heading(fmt::format("{}: {} of their own, {} retained",
                                           objects_text(its, static_cast<std::int64_t>(nodes.size())),
                                           size_text(its.bytes), size_text(its.retained)));
    // Who holds them.
    std::map<Node, Total> holders;
    for (const Node node : nodes) holders[analysis_.dominator(node)].add(analysis_.retained(node));
    std::vector<std::pair<Node, Total>> all(holders.begin(), holders.end());
    std::ranges::stable_sort(all, std::greater(), [](const auto& each) { return each.second.bytes; });
    text += paint_(Ink::heading, fmt::format("{:>10} {:>10}  {}", "Retained", "Objects", "Held by")) + '\n';
    for (std::size_t i = 0; i < std::min(lines_, all.size()); ++i)
      text += fmt::format("{:>10} {:>10}  {}\n", size_text(all[i].second.bytes), count_text(all[i].second.count),
                          all[i].first == root_node ? "several objects" : names_.path(all[i].first));
    text += '\n' + paint_(Ink::heading, fmt::format("{:>10} {:>10}  {}", "Retained", "Own", "Object")) + '\n';
    for (const Node node : some(nodes)) text += object_line(node);
    return text;
  }

  std::string object(const std::string& what) {
    std::string text;
    for (const Node node : some(find(what))) {
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

  // Live objects of the class, the largest first; or the object at the address, which may be dead.
  std::vector<Node> find(const std::string& what) const {
    if (what.starts_with("0x")) {
      Address address = 0;
      std::from_chars(what.data() + 2, what.data() + what.size(), address, 16);
      const std::optional<Node> node = analysis_.graph().find(address);
      return node ? std::vector<Node>{*node} : std::vector<Node>{};
    }
    std::vector<Node> nodes;
    for (Node node = 1; node < analysis_.graph().nodes(); ++node) {
      if (analysis_.is_live(node) && analysis_.classes()[analysis_.class_of(node)].name == what) nodes.push_back(node);
    }
    std::ranges::stable_sort(nodes, std::greater(), [&](Node node) { return analysis_.retained(node); });
    return nodes;
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
    const HeapObject object = analysis_.graph().object(node);
    return fmt::format("{:>10} {:>10}  {} = {} at {:#x}\n", size_text(analysis_.retained(node)), size_text(object.size),
                       names_.path(node), names_.text(object), object.address);
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
