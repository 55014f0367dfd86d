#include "heap/heap_analysis.h"

#include <algorithm>
#include <numeric>

#include "heap/shortest_paths.h"
#include "luastate/strings.h"

namespace luaspy {

HeapAnalysis::~HeapAnalysis() = default;

HeapAnalysis::HeapAnalysis(const Memory& memory, const Lua& lua, Address G, const Options& options)
    : memory_(memory),
      lua_(lua.with_number_types(memory, G)),
      G_(G),
      code_(options.code),
      reader_(lua_.heap_reader(memory, G)),
      collector_(lua_.collector(memory, G)) {
  if (reader_ == nullptr) return;
  const auto report_progress = [&](const char* step, double part) {
    if (options.told) options.told(step, part);
  };
  // The VM's counter says how many objects there can be.
  constexpr double least_size = 40;
  const double expected = std::max(1.0, static_cast<double>(collector_.bytes) / least_size);
  ObjectGraph::Options reading;
  reading.bytes = options.bytes;
  reading.found = [&](std::uint64_t objects) {
    report_progress("finding objects", std::min(1.0, static_cast<double>(objects) / expected));
  };
  reading.all_found = options.all_found;
  reading.read = [&](double part) { report_progress("reading objects", part); };
  graph_ = std::make_unique<ObjectGraph>(*reader_, reading);
  other_bytes_ = reader_->other_bytes();
  report_progress("finding who holds what", 0);
  dominators_ = dominators(
      graph_->edges(), [&](Node node) { return graph_->size(node); },
      [&](double part) { report_progress("finding who holds what", part); });
  count();
  sort_children();
  find_named_roots();
  find_paths();
  classify(options);
  sum_classes();
}

Total HeapAnalysis::all_live() const {
  Total all;
  for (const Total& each : live_) all.count += each.count, all.bytes += each.bytes;
  return all;
}

Total HeapAnalysis::all_dead() const {
  Total all;
  for (const Total& each : dead_) all.count += each.count, all.bytes += each.bytes;
  return all;
}

std::int64_t HeapAnalysis::difference() const {
  const std::uint64_t sum = all_live().bytes + all_dead().bytes + other_bytes_;
  return static_cast<std::int64_t>(sum - static_cast<std::uint64_t>(collector_.bytes));
}

void HeapAnalysis::count() {
  for (Node node = 1; node < graph_->nodes(); ++node) {
    const HeapObject object = graph_->object(node);
    (is_live(node) ? live_ : dead_)[static_cast<std::size_t>(object.type)].add(object.size);
  }
}

void HeapAnalysis::sort_children() {
  children_.first.assign(graph_->nodes() + 1, 0);
  for (const Node node : dominators_.order) {
    if (node != root_node) ++children_.first[dominators_.of[node]];
  }
  Edges::Position end = 0;
  for (Edges::Position& first : children_.first) end += first, first = end;  // filled from the end on
  children_.to.resize(end);
  for (const Node node : dominators_.order) {
    if (node != root_node) children_.to[--children_.first[dominators_.of[node]]] = node;
  }
  dominators_.order = {};  // nobody asks for it any more
}

// loadlib.c: registry._LOADED is package.loaded.
void HeapAnalysis::find_named_roots() {
  const Address main = lua_.main_thread(memory_, G_);
  globals_ = graph_->find(lua_.globals_table(memory_, reader_->table_form(), G_, main)).value_or(no_node);
  const std::optional<Value> registry = lua_.read_value(memory_, lua_.registry_slot(G_));
  if (!registry) return;
  const auto parts = lua_.table_parts(memory_, reader_->table_form(), registry->word);
  if (!parts) return;
  lua_.visit_entries(memory_, *parts, parts->slots(), [&](const Value& key, const Value& value) {
    if (key.type != Value::Type::string || value.type != Value::Type::table) return true;
    if (string_length(memory_, lua_, key.word) != 7 || read_string(memory_, lua_, key.word) != "_LOADED") return true;
    loaded_ = graph_->find(value.word).value_or(no_node);
    return false;
  });
}

// What a reference says to the person who reads a path: fields and upvalues have names that stay,
// while a slot of a stack belongs to a call that soon ends, and the registry is the host's.
void HeapAnalysis::find_paths() {
  constexpr std::uint8_t other_start = 6;
  std::vector<PathStart> starts;
  for (const Node node : {globals_, loaded_}) {
    if (node != no_node) starts.push_back({node, 1});
  }
  for (const Node node : graph_->references(root_node)) starts.push_back({node, other_start});
  before_ = shortest_paths(graph_->edges(), starts, [&](Node node) -> std::uint8_t {
    switch (graph_->type(node)) {
      case ObjectType::thread:
      case ObjectType::trace:
        return 8;
      case ObjectType::prototype:
        return 4;
      case ObjectType::c_function:
      case ObjectType::userdata:
        return 2;
      default:
        return 1;
    }
  });
}

// An object's retained size counts for its class unless another object of the class holds it.
void HeapAnalysis::sum_classes() {
  std::vector<std::uint32_t> above(classes_.size());  // objects of each class on the way from the root
  struct Step {
    Node node;
    Edges::Position next;
  };
  std::vector<Step> path = {{root_node, children_.first[root_node]}};
  while (!path.empty()) {
    Step& step = path.back();
    if (step.next == children_.first[step.node + 1]) {
      if (step.node != root_node) --above[class_of_[step.node]];
      path.pop_back();
      continue;
    }
    const Node node = children_.to[step.next++];
    ObjectClass& its = classes_[class_of_[node]];
    ++its.count;
    its.bytes += graph_->size(node);
    if (above[class_of_[node]]++ == 0) its.retained += retained(node);
    path.push_back({node, children_.first[node]});
  }
}

}  // namespace luaspy
