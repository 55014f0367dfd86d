#include "heap/dominators.h"

#include <utility>

namespace luaspy {
namespace {

// Nodes are renumbered in the order in which a depth-first search reaches them, from 0 on.
struct Search {
  std::vector<Node> number;  // by node; no_node: not reached
  std::vector<Node> node;    // by number
  std::vector<Node> parent;  // by number
};

Search search(const Edges& edges) {
  Search found;
  found.number.assign(edges.nodes(), no_node);
  std::vector<std::pair<Node, Edges::Position>> path;  // a node, and the next of its references to follow
  const auto reach = [&](Node node, Node parent) {
    found.number[node] = static_cast<Node>(found.node.size());
    found.node.push_back(node);
    found.parent.push_back(parent);
    path.emplace_back(node, edges.first[node]);
  };
  reach(root_node, 0);
  while (!path.empty()) {
    auto& [node, next] = path.back();
    if (next == edges.first[node + 1]) {
      path.pop_back();
      continue;
    }
    const Node to = edges.to[next++];
    if (found.number[to] == no_node) reach(to, found.number[node]);
  }
  return found;
}

// Who refers to a node, by numbers.
Edges reversed(const Edges& edges, const Search& found) {
  Edges back;
  const std::size_t count = found.node.size();
  back.first.assign(count + 1, 0);
  const auto each = [&](auto visit) {
    for (Node from = 0; from < count; ++from) {
      for (const Node to : edges.of(found.node[from])) visit(from, found.number[to]);
    }
  };
  each([&](Node, Node to) { ++back.first[to]; });
  Edges::Position end = 0;
  for (Edges::Position& first : back.first) end += first, first = end;  // filled from the end on
  back.to.resize(end);
  each([&](Node from, Node to) { back.to[--back.first[to]] = from; });
  return back;
}

// The forest of the algorithm: which nodes were processed, with the least semidominator on the way
// up to the forest's root, and paths made shorter.
class Forest {
 public:
  explicit Forest(const std::vector<Node>& parents) : ancestor_(parents), label_(parents.size()) {
    for (Node i = 0; i < label_.size(); ++i) label_[i] = i;
  }
  // `last`: nodes from it on are linked.
  Node eval(Node node, Node last, const std::vector<Node>& semi) {
    if (node < last) return node;
    for (Node at = node; ancestor_[at] >= last; at = ancestor_[at]) path_.push_back(at);
    for (; !path_.empty(); path_.pop_back()) {
      const Node at = path_.back(), up = ancestor_[at];
      if (semi[label_[up]] < semi[label_[at]]) label_[at] = label_[up];
      ancestor_[at] = ancestor_[up];
    }
    return label_[node];
  }

 private:
  std::vector<Node> ancestor_, label_;
  std::vector<Node> path_;
};

}  // namespace

Dominators dominators(const Edges& edges, const std::function<std::uint64_t(Node)>& size_of,
                      const std::function<void(double part)>& told) {
  constexpr Node between_reports = 1 << 16;
  constexpr double searched = 0.3;  // of the time, until all is numbered
  Search found = search(edges);
  const auto count = static_cast<Node>(found.node.size());
  std::vector<Node> semi(count);
  {
    const Edges back = reversed(edges, found);
    Forest forest(found.parent);
    for (Node i = 0; i < count; ++i) semi[i] = i;
    for (Node w = count - 1; w > 0; --w) {
      if (told && w % between_reports == 0)
        told(1 - (1 - searched) * static_cast<double>(w) / static_cast<double>(count));
      semi[w] = found.parent[w];
      for (const Node v : back.of(w)) {
        const Node u = forest.eval(v, w + 1, semi);
        if (semi[u] < semi[w]) semi[w] = semi[u];
      }
    }
  }
  // The nearest common ancestor of a node's parent and its semidominator.
  std::vector<Node> dominator = std::move(found.parent);
  for (Node w = 1; w < count; ++w) {
    while (dominator[w] > semi[w]) dominator[w] = dominator[dominator[w]];
  }
  Dominators result;
  result.of.assign(edges.nodes(), no_node);
  result.retained.assign(edges.nodes(), 0);
  for (Node w = 0; w < count; ++w) result.retained[found.node[w]] = size_of(found.node[w]);
  for (Node w = count - 1; w > 0; --w) {
    const Node over = found.node[dominator[w]];
    result.of[found.node[w]] = over;
    result.retained[over] += result.retained[found.node[w]];
  }
  result.order = std::move(found.node);
  return result;
}

}  // namespace luaspy
