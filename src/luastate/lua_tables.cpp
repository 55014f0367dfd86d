#include "luastate/lua_tables.h"

#include <algorithm>
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
  return visit_elements(memory, parts.nodes, sizes().node,
                        std::min<std::uint64_t>(parts.node_count, most_slots - in_array),
                        [&](std::span<const std::byte> bytes) {
                          const auto [key, value] = load_node(bytes);
                          return value.type == Value::Type::nil || visit(key, value);
                        });
}

}  // namespace luaspy
