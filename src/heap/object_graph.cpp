#include "heap/object_graph.h"

#include <algorithm>
#include <limits>

#include "heap/blocks.h"

namespace luaspy {
namespace {

constexpr Address page_of_index = 4096;
constexpr std::uint64_t between_reports = 1 << 16;  // objects
constexpr std::uint32_t large = std::numeric_limits<std::uint32_t>::max();

}  // namespace

ObjectGraph::ObjectGraph(const HeapReader& reader, const Options& options) {
  complete_ = read_objects(reader, options);
  complete_ &= bound_sizes(options.bytes);
  index_pages();
  complete_ &= read_references(reader, options);
}

bool ObjectGraph::read_objects(const HeapReader& reader, const Options& options) {
  Blocks<Packed> objects;
  objects.add({});  // the root
  const std::uint64_t most = std::min<std::uint64_t>(most_objects(options.bytes), no_node - 1);
  const bool complete = reader.visit_objects(most, [&](const HeapObject& object) {
    if (object.address >= address_limit || object.address == 0) return;
    const bool is_large = object.size >= large;
    if (is_large) large_[object.address] = object.size;
    objects.add({static_cast<std::uint32_t>(object.address), static_cast<std::uint16_t>(object.address >> 32),
                 static_cast<std::uint8_t>(object.type), object.is_dead,
                 is_large ? large : static_cast<std::uint32_t>(object.size)});
    if (options.found && objects.size() % between_reports == 0) options.found(objects.size());
  });
  reader.visit_roots([&](const Root& root) { roots_.push_back(root); });
  if (options.all_found) options.all_found(objects.size());
  objects_ = objects.take();
  std::ranges::sort(objects_, {}, &Packed::address);
  // clang 14 cannot use ranges::unique.
  const auto is_same = [](const Packed& one, const Packed& other) { return one.address() == other.address(); };
  const auto same = std::unique(objects_.begin(), objects_.end(), is_same);
  const bool has_same = same != objects_.end();
  objects_.erase(same, objects_.end());
  return complete && !has_same;
}

// Objects do not share memory. If all of them together are larger than the memory is, some sizes are
// nonsense, and visiting each of them whole could take for ever.
bool ObjectGraph::bound_sizes(std::uint64_t bytes) {
  std::uint64_t left = 2 * bytes;
  bool all = true;
  for (Packed& object : objects_) {
    const auto type = static_cast<ObjectType>(object.type);
    // Their bytes are not visited, and need not be resident.
    if (type == ObjectType::string || type == ObjectType::userdata || type == ObjectType::cdata) continue;
    const std::uint64_t size = object.size == large ? large_.at(object.address()) : object.size;
    if (size <= left) {
      left -= size;
    } else {
      object.size = 0;
      all = false;
    }
  }
  return all;
}

void ObjectGraph::index_pages() {
  constexpr Address close = 64;  // pages without objects that an index may have
  Address last = 0;
  for (Node node = 1; node < objects_.size(); ++node) {
    const Address at = objects_[node].address() / page_of_index;
    if (runs_.empty() || at > last + close) {
      if (!runs_.empty()) runs_.back().first.push_back(node);
      runs_.push_back({at * page_of_index, {}});
    }
    std::vector<Node>& first = runs_.back().first;
    while (first.size() <= at - runs_.back().start / page_of_index) first.push_back(node);
    last = at;
  }
  if (!runs_.empty()) runs_.back().first.push_back(static_cast<Node>(objects_.size()));
}

std::optional<Node> ObjectGraph::find(Address address) const {
  const auto after = std::ranges::upper_bound(runs_, address, {}, &Run::start);
  if (after == runs_.begin()) return std::nullopt;
  const Run& run = *std::prev(after);
  const std::size_t index = (address - run.start) / page_of_index;
  if (index + 1 >= run.first.size()) return std::nullopt;
  const auto objects = std::span(objects_).subspan(run.first[index], run.first[index + 1] - run.first[index]);
  const auto found = std::ranges::lower_bound(objects, address, {}, &Packed::address);
  if (found == objects.end() || found->address() != address) return std::nullopt;
  return run.first[index] + static_cast<Node>(found - objects.begin());
}

HeapObject ObjectGraph::object(Node node) const {
  const Packed& packed = objects_[node];
  const Address address = packed.address();
  const std::uint64_t size = packed.size == large && large_.contains(address) ? large_.at(address) : packed.size;
  return {address, static_cast<ObjectType>(packed.type), packed.dead != 0, size};
}

ObjectType ObjectGraph::type(Node node) const { return static_cast<ObjectType>(objects_[node].type); }

bool ObjectGraph::read_references(const HeapReader& reader, const Options& options) {
  constexpr std::uint64_t smallest_reference = 4;  // LuaJIT with 32-bit references
  const std::uint64_t most = std::min(options.bytes / smallest_reference, Edges::most);
  std::vector<std::pair<Node, Node>> later;  // from, to: of nodes whose turn has passed, or has not come yet
  std::vector<Node> roots;
  edges_.first.reserve(objects_.size() + 1);
  edges_.first.push_back(0);
  for (const Root& root : roots_) {
    if (const std::optional<Node> node = find(root.to)) roots.push_back(*node);
  }
  std::ranges::sort(roots);
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  Blocks<Node> to;
  for (const Node node : roots) to.add(node);
  edges_.first.push_back(static_cast<Edges::Position>(to.size()));
  bool complete = true;
  for (Node node = 1; node < objects_.size(); ++node) {
    if (options.read && node % between_reports == 0)
      options.read(static_cast<double>(node) / static_cast<double>(objects_.size()));
    const HeapObject from = object(node);
    if (to.size() + later.size() >= most) complete = false;
    else
      reader.visit_references(from, [&](const Reference& reference) {
        const std::optional<Node> end = find(reference.to);
        if (!end || to.size() + later.size() >= most) return;
        if (reference.from == from.address) to.add(*end);
        else if (const std::optional<Node> other = find(reference.from)) later.emplace_back(*other, *end);
      });
    edges_.first.push_back(static_cast<Edges::Position>(to.size()));
  }
  edges_.to = to.take();
  if (!later.empty()) add_later(later);
  return complete;
}

void ObjectGraph::add_later(std::vector<std::pair<Node, Node>>& later) {
  std::ranges::sort(later);
  Edges all;
  all.first.reserve(edges_.first.size());
  all.to.reserve(edges_.to.size() + later.size());
  auto next = later.begin();
  for (Node node = 0; node < edges_.nodes(); ++node) {
    all.first.push_back(static_cast<Edges::Position>(all.to.size()));
    const std::span<const Node> own = edges_.of(node);
    all.to.insert(all.to.end(), own.begin(), own.end());
    for (; next != later.end() && next->first == node; ++next) all.to.push_back(next->second);
  }
  all.first.push_back(static_cast<Edges::Position>(all.to.size()));
  edges_ = std::move(all);
}

}  // namespace luaspy
