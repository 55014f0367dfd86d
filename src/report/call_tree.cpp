#include "report/call_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace luaspy {
namespace {

class TreeText {
 public:
  TreeText(const CallTree& tree, const FunctionTable& functions, double least, const TextStyle& style)
      : tree_(tree), functions_(functions), style_(style), least_(least), whole_(tree.nodes[0].cost.total) {}

  // No recursion, because stacks can be arbitrarily deep.
  std::string text() {
    struct Place {
      std::uint32_t node = 0;
      std::string prefix;
      bool is_last = false, is_first_level = false;
    };
    std::vector<Place> left;
    const auto push = [&](const CallTree::Node& of, const std::string& prefix, bool first_level) {
      const std::size_t kept = count_kept(of);
      for (std::size_t i = kept; i-- > 0;)
        left.push_back({of.inner[i], prefix, i + 1 == kept && kept == of.inner.size(), first_level});
    };
    text_ = " %Total    %Own  Function (file:line)\n";
    push(tree_.nodes[0], "", true);
    std::vector<std::pair<std::size_t, std::uint32_t>> open;  // the size of `left` when a node's calls are finished,
                                                              // and the node
    std::vector<std::string> open_prefixes;
    const auto close = [&] {
      for (; !open.empty() && left.size() <= open.back().first; open.pop_back(), open_prefixes.pop_back())
        add_rest(tree_.nodes[open.back().second], open_prefixes.back());
    };
    while (!left.empty()) {
      const Place place = left.back();
      left.pop_back();
      const std::uint32_t end = add_line(place.node, place.is_first_level ? "" : place.prefix + branch(place.is_last));
      const std::string prefix = place.is_first_level ? "" : place.prefix + trunk(place.is_last);
      open.emplace_back(left.size(), end);
      open_prefixes.push_back(bounded(prefix));
      push(tree_.nodes[end], bounded(prefix), false);
      close();
    }
    add_rest(tree_.nodes[0], "");
    return std::move(text_);
  }

 private:
  bool utf8() const { return style_.charset == Charset::utf8; }
  std::string branch(bool is_last) const { return utf8() ? is_last ? "└ " : "├ " : is_last ? "`-" : "|-"; }
  std::string trunk(bool is_last) const { return is_last ? "  " : utf8() ? "│ " : "| "; }
  // Where the tree is deeper than a screen is wide, the indentation stays the same.
  std::string bounded(const std::string& prefix) const {
    return columns(prefix) <= 120 ? prefix : prefix.substr(0, prefix.size() - trunk(prefix.ends_with("  ")).size());
  }
  bool is_kept(std::uint32_t node) const { return percent(tree_.nodes[node].cost.total, whole_) >= least_; }
  std::size_t count_kept(const CallTree::Node& of) const {
    return static_cast<std::size_t>(std::ranges::count_if(of.inner, [&](std::uint32_t node) { return is_kept(node); }));
  }

  // Adds the line for `first` and the chain of only calls within it. Returns the innermost of
  // these.
  std::uint32_t add_line(std::uint32_t first, const std::string& prefix) {
    std::vector<std::uint32_t> chain = {first};
    for (;;) {
      const CallTree::Node& node = tree_.nodes[chain.back()];
      if (node.inner.size() != 1 || node.cost.own != 0) break;
      chain.push_back(node.inner.front());
    }
    const std::string arrow = utf8() ? " → " : " > ";
    std::string line;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (chain.size() > 4 && i == 1) {
        line += fmt::format("{}{} {} {}", arrow, utf8() ? "…" : "..", chain.size() - 3, utf8() ? "…" : "..");
        i = chain.size() - 2;
      }
      line += (i == 0 ? "" : arrow) + shown(functions_.texts[tree_.nodes[chain[i]].function], style_);
    }
    const Cost& cost = tree_.nodes[chain.back()].cost;
    const double own = percent(cost.own, whole_);
    text_ += fmt::format("  {:5.1f}   {}  {}{}\n", percent(cost.total, whole_),
                         style_.paint(Paint::of_share(own), fmt::format("{:5.1f}", own)), prefix, line);
    return chain.back();
  }

  void add_rest(const CallTree::Node& of, const std::string& prefix) {
    std::int64_t rest = 0;
    const std::size_t kept = count_kept(of);
    for (std::size_t i = kept; i < of.inner.size(); ++i) rest += tree_.nodes[of.inner[i]].cost.total;
    if (kept == of.inner.size()) return;
    text_ += fmt::format("  {:5.1f}          {}{}{} {} more\n", percent(rest, whole_), prefix,
                         &of == tree_.nodes.data() ? "" : branch(true), utf8() ? "…" : "...", of.inner.size() - kept);
  }

  const CallTree& tree_;
  const FunctionTable& functions_;
  const TextStyle& style_;
  double least_;
  std::int64_t whole_;
  std::string text_;
};

}  // namespace

CallTree call_tree(const Profile& profile, const FunctionTable& functions, By by) {
  CallTree tree;
  tree.nodes.emplace_back();
  std::unordered_map<std::uint64_t, std::uint32_t> known;  // by node and function
  for (const auto& [id, amount] : profile.stack_counts()) {
    const std::int64_t of_stack = cost(amount, by);
    std::uint32_t node = 0;
    tree.nodes[0].cost.total += of_stack;
    for (const FrameId frame : profile.stack(id)) {
      const std::uint32_t function = functions.of_frame[frame];
      const auto [place, added] = known.emplace(std::uint64_t{node} << 32 | function,
                                                static_cast<std::uint32_t>(tree.nodes.size()));
      if (added) {
        tree.nodes[node].inner.push_back(place->second);
        tree.nodes.push_back({function, {}, {}});
      }
      node = place->second;
      tree.nodes[node].cost.total += of_stack;
    }
    tree.nodes[node].cost.own += of_stack;
  }
  for (CallTree::Node& node : tree.nodes) {
    std::ranges::sort(node.inner, [&](std::uint32_t a, std::uint32_t b) {
      const std::int64_t cost_a = tree.nodes[a].cost.total, cost_b = tree.nodes[b].cost.total;
      return cost_a != cost_b ? cost_a > cost_b
                              : functions.texts[tree.nodes[a].function] < functions.texts[tree.nodes[b].function];
    });
  }
  return tree;
}

std::string call_tree_text(const CallTree& tree, const FunctionTable& functions, double least, const TextStyle& style) {
  return TreeText(tree, functions, least, style).text();
}

}  // namespace luaspy
