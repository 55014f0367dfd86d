#include "heapdump/heap_boxes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "heap/object_names.h"

namespace luaspy {
namespace {

constexpr std::size_t most_label = 100;  // bytes
constexpr std::size_t most_named = 8;    // objects of one class that one object holds: each has its own name
constexpr double much = 0.01;            // of the heap

class Boxes {
 public:
  Boxes(const HeapAnalysis& analysis, std::size_t most_depth, const std::unordered_set<Node>& wanted)
      : analysis_(analysis), names_(analysis), most_depth_(most_depth), wanted_(wanted) {
    for (const Root& root : analysis.graph().roots()) {
      if (root.kind == Root::Kind::registry) registry_ = analysis.graph().find(root.to).value_or(no_node);
    }
  }

  HeapBoxes take() {
    made_.boxes.emplace_back();
    std::vector<Open> open;
    for (auto& [label, nodes] : first_boxes()) open.push_back(open_box(0, label, std::move(nodes), 1));
    while (!open.empty()) {
      Open next = std::move(open.back());
      open.pop_back();
      finish(std::move(next), open);
    }
    return std::move(made_);
  }

 private:
  // A box whose objects have not been counted yet.
  struct Open {
    std::uint32_t box = 0;
    std::string label;
    std::vector<Node> nodes;
    std::size_t depth = 0;
  };

  Open open_box(std::uint32_t outer, const std::string& label, std::vector<Node> nodes, std::size_t depth) {
    HeapBox made;
    made.outer = outer;
    made.label = printable(label, most_label);
    made_.boxes.push_back(std::move(made));
    return {static_cast<std::uint32_t>(made_.boxes.size() - 1), label, std::move(nodes), depth};
  }

  // What the root holds. The tables of globals and of loaded modules stand beside what holds them:
  // each path from there inwards is one that a program can write.
  std::map<std::string, std::vector<Node>> first_boxes() {
    std::map<std::string, std::vector<Node>> boxes;
    for (const auto& [name, node] :
         {std::pair("_G", analysis_.globals()), std::pair("package.loaded", analysis_.loaded())}) {
      if (is_set_apart(node)) boxes[name].push_back(node);
    }
    for (auto& [label, nodes] : held_by({root_node})) {
      auto& into = boxes[label];
      into.insert(into.end(), nodes.begin(), nodes.end());
    }
    return boxes;
  }

  bool is_set_apart(Node node) const {
    if (node == no_node || !analysis_.is_live(node) || (node != analysis_.globals() && node != analysis_.loaded()))
      return false;
    // Held by the root or the registry, not by something of the program.
    const Node holder = analysis_.dominator(node);
    return holder == root_node || holder == registry_;
  }

  // Where one object holds only a few of a class, and for those that hold much, what they are
  // called: as the references to them, if they are its own. Those of the root and the registry that
  // several paths lead to: as their path.
  std::unordered_map<Node, std::string> own_labels(Node holder, const std::map<ClassNumber, std::vector<Node>>& held) {
    std::unordered_map<Node, std::string> labels;
    for (const auto& [its_class, nodes] : held) {
      for (const Node node : nodes) {
        const ObjectType type = analysis_.graph().type(node);
        const bool holds_much = static_cast<double>(analysis_.retained(node)) >=
                                much * static_cast<double>(analysis_.all_live().bytes);
        if (type == ObjectType::string || type == ObjectType::prototype || (nodes.size() > most_named && !holds_much))
          continue;
        if (type != ObjectType::upvalue || holds_much) labels[node];
      }
    }
    if (labels.empty()) return labels;
    if (holder != root_node) name_references(holder, labels);
    if (holder != root_node && holder != registry_) return labels;
    for (auto& [node, label] : labels) {
      if (label.empty() && holder == root_node) label = root_name(node);
      if (label.empty() && paths_left_ > 0) --paths_left_, label = label_of_path(node);
    }
    return labels;
  }

  // The whole path; of an upvalue, whose path leads through functions, its last step.
  std::string label_of_path(Node node) {
    if (analysis_.graph().type(node) != ObjectType::upvalue) return names_.path(node);
    const std::vector<ObjectNames::Stage> stages = names_.stages(node);
    return stages.empty() ? "" : stages.back().alone();
  }

  // The names of the references from `holder` to the keys of `labels`, as far as they have names.
  void name_references(Node holder, std::unordered_map<Node, std::string>& labels) {
    const HeapObject object = analysis_.graph().object(holder);
    analysis_.reader().visit_references(object, [&](const Reference& reference) {
      const bool has_name = reference.link == Link::entry || reference.link == Link::upvalue ||
                            reference.link == Link::slot || reference.link == Link::metatable ||
                            reference.link == Link::environment || reference.link == Link::user_value;
      // An element is one of many by its nature.
      const bool is_element = reference.link == Link::entry && reference.key.type != Value::Type::string;
      if (!has_name || is_element || reference.from != object.address) return;
      const std::optional<Node> to = analysis_.graph().find(reference.to);
      const auto label = to ? labels.find(*to) : labels.end();
      if (label != labels.end() && label->second.empty()) label->second = names_.name_of(object, reference);
    });
  }

  std::string root_name(Node node) const {
    const Address address = analysis_.graph().object(node).address;
    const auto& roots = analysis_.graph().roots();
    const auto root = std::ranges::find(roots, address, &Root::to);
    return root != roots.end() ? names_.name_of(*root) : "";
  }

  const std::string& class_name(Node node) const { return analysis_.classes()[analysis_.class_of(node)].name; }

  // Counts the objects of the box, and adds what it holds to `open`.
  void finish(Open its, std::vector<Open>& open) {
    std::map<std::string, std::vector<Node>> held;
    while (!its.nodes.empty()) {
      std::vector<Node> same;  // belongs into this box, too
      for (const Node node : its.nodes) its.depth < most_depth_ ? count(its.box, node) : count_all(its.box, node);
      if (its.depth >= most_depth_) break;
      for (auto& [label, nodes] : held_by(its.nodes)) {
        auto& into = label == its.label ? same : held[label];
        into.insert(into.end(), nodes.begin(), nodes.end());
      }
      its.nodes = std::move(same);
    }
    for (auto& [label, nodes] : held) open.push_back(open_box(its.box, label, std::move(nodes), its.depth + 1));
  }

  void count(std::uint32_t number, Node node) {
    HeapBox& box = made_.boxes[number];
    ++box.objects;
    box.bytes += analysis_.graph().size(node);
    if (box.largest == no_node || analysis_.retained(node) > analysis_.retained(box.largest)) box.largest = node;
    if (wanted_.contains(node)) made_.of[node] = number;
  }
  // With everything that the object holds.
  void count_all(std::uint32_t number, Node node) {
    std::vector<Node> open = {node};
    while (!open.empty()) {
      const Node next = open.back();
      open.pop_back();
      count(number, next);
      const auto held = analysis_.dominated(next);
      open.insert(open.end(), held.begin(), held.end());
    }
  }

  // What objects hold directly, by label.
  std::map<std::string, std::vector<Node>> held_by(const std::vector<Node>& holders) {
    std::map<ClassNumber, std::vector<Node>> by_class;
    for (const Node holder : holders) {
      for (const Node node : analysis_.dominated(holder)) {
        if (!is_set_apart(node)) by_class[analysis_.class_of(node)].push_back(node);
      }
    }
    std::unordered_map<Node, std::string> own;
    if (holders.size() == 1) own = own_labels(holders.front(), by_class);
    std::map<std::string, std::vector<Node>> by_label;
    for (const auto& [its_class, nodes] : by_class) {
      for (const Node node : nodes) {
        const auto label = own.find(node);
        by_label[label != own.end() && !label->second.empty() ? label->second : class_name(node)].push_back(node);
      }
    }
    return by_label;
  }

  const HeapAnalysis& analysis_;
  ObjectNames names_;
  std::size_t most_depth_;
  const std::unordered_set<Node>& wanted_;
  HeapBoxes made_;
  Node registry_ = no_node;
  int paths_left_ = 1000;  // each takes as long as the tables on it are large
};

}  // namespace

HeapBoxes heap_boxes(const HeapAnalysis& analysis, std::size_t most_depth, const std::unordered_set<Node>& wanted) {
  return Boxes(analysis, most_depth, wanted).take();
}

}  // namespace luaspy
