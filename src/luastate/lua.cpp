#include "luastate/lua.h"

#include <algorithm>
#include <array>

namespace luaspy {

std::optional<Value> Lua::read_value(const Memory& memory, Address slot) const {
  std::array<std::byte, 32> bytes;
  const auto some = std::span(bytes).first(slot_size());
  if (!plausible_pointer(slot) || !memory.read(slot, some)) return std::nullopt;
  return load_value(some, 0);
}

// FNV-1a, by words.
std::uint64_t Lua::identity(const Memory& memory, Address G) const {
  constexpr std::uint64_t basis = 0xcbf29ce484222325, prime = 0x100000001b3;
  const std::array<AddressRange, 3> fields = identity_fields(G);
  std::array<std::byte, most_identity> bytes{};
  std::array<Memory::Request, 3> requests;
  std::size_t used = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t size = std::min<std::size_t>(fields[i].size(), bytes.size() - used);
    requests[i] = {fields[i].start, std::span(bytes).subspan(used, size)};
    used += size;
  }
  if (used == 0) return 0;
  memory.read_batch(requests);
  if (!std::ranges::all_of(requests, [](const auto& each) { return each.done || each.into.empty(); })) return 0;
  std::uint64_t hash = basis;
  for (std::size_t at = 0; at + sizeof(hash) <= bytes.size(); at += sizeof(hash))
    hash = (hash ^ load<std::uint64_t>(bytes, at)) * prime;
  return std::max<std::uint64_t>(hash, 1);
}

bool Lua::visit_array(const Memory& memory, const TableParts& parts, std::uint64_t count,
                      const std::function<bool(std::uint64_t index, const Value& value)>& visit) const {
  std::uint64_t index = sizes_.first_index;
  return visit_elements(memory, parts.array, slot_size(), count,
                        [&](std::span<const std::byte> slot) { return visit(index++, load_value(slot, 0)); });
}

bool Lua::visit_entries(const Memory& memory, const TableParts& parts, std::uint64_t most_slots,
                        const std::function<bool(const Value& key, const Value& value)>& visit) const {
  bool more = true;
  const std::uint64_t in_array = std::min<std::uint64_t>(parts.array_size, most_slots);
  const bool readable = visit_array(memory, parts, in_array, [&](std::uint64_t index, const Value& value) {
    Value key{Value::Type::integer, index};
    if (!sizes_.integer_keys) key = {Value::Type::number, std::bit_cast<std::uint64_t>(static_cast<double>(index))};
    if (value.type != Value::Type::nil) more = visit(key, value);
    return more;
  });
  if (!readable || !more) return readable;
  return visit_elements(memory, parts.nodes, sizes_.node,
                        std::min<std::uint64_t>(parts.node_count, most_slots - in_array),
                        [&](std::span<const std::byte> bytes) {
                          const auto [key, value] = load_node(bytes);
                          return value.type == Value::Type::nil || visit(key, value);
                        });
}

}  // namespace luaspy
