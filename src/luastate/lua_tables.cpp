#include "luastate/lua_tables.h"

#include <algorithm>
#include <array>
#include <bit>

namespace luaspy {

bool LuaTables::visit_array(const Memory& memory, const TableParts& parts, std::uint64_t count,
                            const std::function<bool(std::uint64_t index, const Value& value)>& visit) const {
  std::uint64_t index = sizes().first_index;
  return visit_elements(memory, parts.array, slot_size(), count,
                        [&](std::span<const std::byte> slot) { return visit(index++, load_value(slot, 0)); });
}

bool LuaTables::visit_entries(const Memory& memory, const TableParts& parts, std::uint64_t most_slots,
                              const std::function<bool(const Value& key, const Value& value)>& visit) const {
  bool more = true;
  const std::uint64_t in_array = std::min<std::uint64_t>(parts.array_size, most_slots);
  const bool readable = visit_array(memory, parts, in_array, [&](std::uint64_t index, const Value& value) {
    Value key{Value::Type::integer, index};
    if (!sizes().integer_keys) key = {Value::Type::number, std::bit_cast<std::uint64_t>(static_cast<double>(index))};
    if (value.type != Value::Type::nil) more = visit(key, value);
    return more;
  });
  if (!readable || !more) return readable;
  const auto nodes = static_cast<std::uint32_t>(std::min<std::uint64_t>(parts.node_count, most_slots - in_array));
  return visit_nodes(memory, parts, nodes, [&](std::uint32_t, const Value& key, const Value& value) {
    return value.type == Value::Type::nil || visit(key, value);
  });
}

std::optional<std::pair<Value, Value>> LuaTables::node(const Memory& memory, const TableParts& parts,
                                                       std::uint32_t number) const {
  std::array<std::byte, 64> bytes;
  const auto its = std::span(bytes).first(sizes().node);
  if (number >= parts.node_count || !memory.read(parts.nodes + Address{number} * sizes().node, its))
    return std::nullopt;
  return load_node(its);
}

bool LuaTables::visit_nodes(
    const Memory& memory, const TableParts& parts, std::uint32_t count,
    const std::function<bool(std::uint32_t number, const Value& key, const Value& value)>& visit) const {
  std::uint32_t number = 0;
  return visit_elements(memory, parts.nodes, sizes().node, std::min(count, parts.node_count),
                        [&](std::span<const std::byte> bytes) {
                          const auto [key, value] = load_node(bytes);
                          return visit(number++, key, value);
                        });
}

}  // namespace luaspy
