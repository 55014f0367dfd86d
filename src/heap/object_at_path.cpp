#include <algorithm>

#include "heap/object_names.h"

namespace luaspy {
namespace {

constexpr int most_followed = 64;  // path() leaves out steps long before that

}  // namespace

std::optional<Node> ObjectNames::at_path(std::string_view path) {
  const Node globals = analysis_.globals(), loaded = analysis_.loaded();
  if (path.empty()) return std::nullopt;
  if (path == "globals" && globals != no_node) return globals;
  std::vector<Node> firsts;
  if (loaded != no_node && path.starts_with("package.loaded")) firsts.push_back(loaded);
  for (const Root& root : analysis_.graph().roots()) {
    const std::optional<Node> node = analysis_.graph().find(root.to);
    if (node && path.starts_with(name_of(root)) && std::ranges::find(firsts, *node) == firsts.end())
      firsts.push_back(*node);
  }
  for (const Node node : firsts) {
    if (!analysis_.is_live(node) || analysis_.before(node) != root_node || node == globals) continue;
    const std::string text = first_step(node);
    if (!path.starts_with(text)) continue;
    if (const auto found = follow(node, path.substr(text.size()), text.empty(), {}, 0)) return found;
  }
  if (globals == no_node) return std::nullopt;
  if (const auto found = follow(globals, path, true, {}, 0)) return found;
  constexpr std::string_view spelled_out = "globals";  // as what refers to an object is printed: globals.bank
  return path.starts_with(spelled_out) ? follow(globals, path.substr(spelled_out.size()), false, {}, 0) : std::nullopt;
}

// Of the tree of paths: each object comes after one other. An upvalue has the path of its value, which is what a
// reader means.
std::optional<Node> ObjectNames::follow(Node at, std::string_view rest, bool is_first, const std::string& name,
                                        int depth) {
  const bool is_upvalue = analysis_.graph().type(at) == ObjectType::upvalue;
  if (rest.empty() && !is_upvalue) return at;
  if (depth == most_followed) return std::nullopt;
  for (const Node next : next_steps(at, rest, is_first)) {
    const Step one = step(at, next, is_first, name);
    if (!rest.starts_with(one.text)) continue;
    if (const auto found = follow(next, rest.substr(one.text.size()), false, one.name, depth + 1)) return found;
  }
  return rest.empty() ? std::optional(at) : std::nullopt;
}

// The objects after `at` that `rest` may go on with. What a table or a stack has is told by its key or place first: to
// compare all references of each would take the square of their number.
std::vector<Node> ObjectNames::next_steps(Node at, std::string_view rest, bool is_first) {
  const HeapObject object = analysis_.graph().object(at);
  std::vector<Node> all;
  analysis_.reader().visit_references(object, [&](const Reference& reference) {
    if (reference.from != object.address) return;
    const std::optional<Node> to = analysis_.graph().find(reference.to);
    if (!to || !analysis_.is_live(*to) || analysis_.before(*to) != at) return;
    if (reference.link == Link::entry && !rest.starts_with(key_text(reference.key, is_first))) return;
    if (reference.link == Link::key && !rest.starts_with(" → key " + text(analysis_.graph().object(*to)))) return;
    if (reference.link == Link::slot && !rest.starts_with(" → " + slot_text(object.address, reference.index))) return;
    if (std::ranges::find(all, *to) == all.end()) all.push_back(*to);
  });
  return all;
}

}  // namespace luaspy
