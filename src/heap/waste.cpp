#include "heap/waste.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "luastate/coroutine.h"
#include "luastate/strings.h"

namespace luaspy {
namespace {

// Keeps the `most` with the most bytes, in order.
template <typename T>
void keep_largest(std::vector<T>& all, std::size_t most, Total* sum) {
  for (const T& each : all) {
    if (sum != nullptr) sum->add(each.bytes);
  }
  std::ranges::stable_sort(all, std::greater(), &T::bytes);
  all.resize(std::min(most, all.size()));
}

}  // namespace

std::vector<DuplicateText> duplicate_texts(const HeapAnalysis& analysis, std::size_t most, Total* all) {
  constexpr std::uint64_t least = 64, most_read = 1 << 20;  // bytes of a string
  struct Key {
    std::uint64_t size;
    std::size_t hash;
    bool operator==(const Key&) const = default;
  };
  const auto hash_of = [](const Key& key) { return key.hash ^ key.size; };
  std::unordered_map<Key, DuplicateText, decltype(hash_of)> texts(16, hash_of);
  for (Node node = 1; node < analysis.graph().nodes(); ++node) {
    if (analysis.graph().type(node) != ObjectType::string || !analysis.is_live(node)) continue;
    const HeapObject string = analysis.graph().object(node);
    if (string.size < least) continue;
    const auto text = read_string(analysis.memory(), analysis.lua(), string.address, most_read);
    if (!text) continue;
    DuplicateText& each = texts[{string.size, std::hash<std::string_view>()(*text)}];
    if (each.count++ == 0) each.example = node;
    else each.bytes += string.size;
  }
  std::vector<DuplicateText> found;
  for (const auto& [key, each] : texts) {
    if (each.count > 1) found.push_back(each);
  }
  std::ranges::sort(found, {}, &DuplicateText::example);  // the map has no order
  keep_largest(found, most, all);
  return found;
}

std::vector<RoomyTable> roomy_tables(const HeapAnalysis& analysis, std::size_t most, Total* all) {
  constexpr std::uint64_t least = 4096;  // bytes
  std::vector<RoomyTable> found;
  for (Node node = 1; node < analysis.graph().nodes(); ++node) {
    if (analysis.graph().type(node) != ObjectType::table || !analysis.is_live(node)) continue;
    const HeapObject table = analysis.graph().object(node);
    if (table.size < least) continue;
    const auto parts = analysis.lua().table_parts(analysis.memory(), analysis.reader().table_form(), table.address);
    if (!parts || parts->slots() == 0) continue;
    RoomyTable each{node, parts->slots(), 0, 0};
    analysis.lua().visit_entries(analysis.memory(), *parts, each.slots, [&](const Value&, const Value&) {
      ++each.entries;
      return true;
    });
    each.bytes = table.size * (each.slots - each.entries) / each.slots;
    if (each.entries * 4 < each.slots && each.bytes >= least) found.push_back(each);
  }
  keep_largest(found, most, all);
  return found;
}

std::vector<Node> coroutines_of_registry(const HeapAnalysis& analysis) {
  const ObjectGraph& graph = analysis.graph();
  const std::optional<Value> slot = analysis.lua().read_value(analysis.memory(),
                                                              analysis.lua().registry_slot(analysis.global_state()));
  const std::optional<Node> registry = slot ? graph.find(slot->word) : std::nullopt;
  if (!registry) return {};
  // What can be reached without the registry's own entries.
  std::vector<bool> reached(graph.nodes());
  std::vector<Node> queue;
  const auto reach = [&](Node node) {
    if (node == no_node || node == *registry || reached[node]) return;
    reached[node] = true;
    queue.push_back(node);
  };
  reach(analysis.globals());
  reach(analysis.loaded());
  for (const Node node : graph.references(root_node)) reach(node);
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const Node to : graph.references(queue[i])) reach(to);
  }
  std::vector<Node> found;
  CoroutineLook look;
  for (Node node = 1; node < graph.nodes(); ++node) {
    if (graph.type(node) != ObjectType::thread || !analysis.is_live(node) || reached[node]) continue;
    const CoroutineAt at = {analysis.lua(), analysis.global_state(), graph.object(node).address};
    const bool read = look_at_coroutine(analysis.memory(), at, {}, look);
    if (read && look.status == CoroutineStatus::suspended) found.push_back(node);
  }
  return found;
}

}  // namespace luaspy
