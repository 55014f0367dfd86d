#include <algorithm>

#include "heap/object_names.h"

namespace luaspy {
namespace {

constexpr int longest_path = 64;        // path() leaves out some long before that
constexpr std::size_t most_found = 16;  // objects of one path

}  // namespace

std::vector<Node> ObjectNames::at_path(std::string_view path) {
  const Node globals = analysis_.globals(), loaded = analysis_.loaded();
  std::vector<Node> firsts, found;
  if (path.empty()) return found;
  if (path == "globals" && globals != no_node) return {globals};
  if (loaded != no_node && path.starts_with("package.loaded")) firsts.push_back(loaded);
  for (const Root& root : analysis_.graph().roots()) {
    const std::optional<Node> node = analysis_.graph().find(root.to);
    if (node && path.starts_with(name_of(root)) && std::ranges::find(firsts, *node) == firsts.end())
      firsts.push_back(*node);
  }
  for (const Node node : firsts) {
    if (!analysis_.is_live(node) || analysis_.before(node) != root_node || node == globals) continue;
    const std::string text = first_step(node);
    if (path.starts_with(text)) follow(node, path.substr(text.size()), text.empty(), {}, 0, found);
  }
  if (!found.empty() || globals == no_node) return found;
  follow(globals, path, true, {}, 0, found);
  constexpr std::string_view spelled_out = "globals";  // as what refers to an object is printed: globals.bank
  if (found.empty() && path.starts_with(spelled_out))
    follow(globals, path.substr(spelled_out.size()), false, {}, 0, found);
  return found;
}

// Of the tree of paths: each object comes after one other. An upvalue has the path of its value, which is what a
// reader means.
void ObjectNames::follow(Node at, std::string_view rest, bool is_first, const std::string& name, int depth,
                         std::vector<Node>& found) {
  const std::size_t before = found.size();
  const bool is_upvalue = analysis_.graph().type(at) == ObjectType::upvalue;
  if (rest.empty() && !is_upvalue) return found.push_back(at);
  if (depth == longest_path) return;
  for (const Node next : next_steps(at, rest, is_first)) {
    if (found.size() >= most_found) return;
    const Step one = step(at, next, is_first, name);
    if (rest.starts_with(one.text)) follow(next, rest.substr(one.text.size()), false, one.name, depth + 1, found);
  }
  if (rest.empty() && found.size() == before) found.push_back(at);
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
