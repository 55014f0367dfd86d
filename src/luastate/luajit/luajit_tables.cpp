#include "luastate/luajit/luajit_tables.h"

#include <array>
#include <limits>
#include <vector>

#include "luastate/luajit/luajit_lua.h"
#include "luastate/strings.h"

namespace luaspy {
namespace {

constexpr std::uint32_t most_nodes = 1 << 16;
constexpr int most_metatables = 6;  // limit for one access
constexpr std::size_t value_size = 8;

// The hash part of `table`; empty if it is not a table.
std::vector<std::byte> read_nodes(const Memory& memory, const LuajitLayout& layout, Address table) {
  const std::optional<TableParts> parts = LuajitLua(layout).table_parts(memory, {}, table);
  if (!parts || parts->node_count > most_nodes) return {};
  std::vector<std::byte> bytes(std::size_t{parts->node_count} * layout.node_size);
  if (!memory.read(parts->nodes, bytes)) return {};
  return bytes;
}

bool is_nil(std::uint64_t value, const LuajitLayout& layout) {
  return static_cast<std::int64_t>(value) >> (layout.gc64 ? 47 : 32) == -1;
}  // LJ_TNIL

std::optional<std::uint64_t> raw_field(const Memory& memory, const LuajitLayout& layout, Address table, Address key) {
  const std::vector<std::byte> nodes = read_nodes(memory, layout, table);
  for (std::size_t at = 0; at < nodes.size(); at += layout.node_size) {
    if (object_of(layout, load<std::uint64_t>(nodes, at + layout.node_key), luajit::gct_string) != key) continue;
    const auto value = load<std::uint64_t>(nodes, at + layout.node_val);
    return is_nil(value, layout) ? std::nullopt : std::optional(value);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> raw_field(const Memory& memory, const LuajitLayout& layout, Address table,
                                       const std::string& name) {
  std::optional<std::uint64_t> found;
  visit_table(memory, layout, table, [&](const std::string& key, std::uint64_t value) {
    if (key == name) found = value;
    return !found;
  });
  return found;
}

}  // namespace

std::optional<TableParts> LuajitLua::table_parts(const Memory& memory, TableForm, Address table) const {
  constexpr std::uint32_t most_slots = (1 << 27) + 1;  // lj_def.h, LJ_MAX_ASIZE
  std::array<std::byte, 64> object;
  const auto fields = std::span(object).first(std::max(layout_.tab_hmask, layout_.tab_node) + sizeof(Address));
  if (!plausible_pointer(table) || !memory.read(table, fields) ||
      load<std::uint8_t>(fields, layout_.L_gct) != luajit::gct_table)
    return std::nullopt;
  TableParts parts;
  const auto mask = load<std::uint32_t>(fields, layout_.tab_hmask);
  parts.nodes = load_ref(layout_, fields, layout_.tab_node);
  if (mask >= most_slots || (mask & (mask + 1)) != 0 || !plausible_pointer(parts.nodes)) return std::nullopt;
  parts.node_count = mask + 1;
  parts.array = load_ref(layout_, fields, layout_.tab_array);
  parts.array_size = load<std::uint32_t>(fields, layout_.tab_asize);
  if (!plausible_pointer(parts.array) || parts.array_size > most_slots) parts.array = parts.array_size = 0;
  parts.metatable = load_ref(layout_, fields, layout_.tab_metatable);
  return parts;
}

void visit_table(const Memory& memory, const LuajitLayout& layout, Address table,
                 const std::function<bool(const std::string& key, std::uint64_t value)>& visit) {
  const std::vector<std::byte> nodes = read_nodes(memory, layout, table);
  std::vector<Address> keys;
  std::vector<std::uint64_t> values;
  for (std::size_t at = 0; at < nodes.size(); at += layout.node_size) {
    const auto value = load<std::uint64_t>(nodes, at + layout.node_val);
    const Address key = object_of(layout, load<std::uint64_t>(nodes, at + layout.node_key), luajit::gct_string);
    if (key == 0 || is_nil(value, layout)) continue;
    keys.push_back(key);
    values.push_back(value);
  }
  bool more = true;
  const LuajitLua lua(layout);
  std::size_t bytes_left = std::numeric_limits<std::size_t>::max();
  StringBatch(memory, lua, string_limit).read(keys, bytes_left, [&](std::size_t i, const std::string& key) {
    more = more && visit(key, values[i]);
  });
}

Address loaded_table(const Memory& memory, const LuajitLayout& layout, Address G) {
  const std::optional<std::uint64_t> registry = memory.get<std::uint64_t>(G + layout.G_registry);
  const Address table = registry ? object_of(layout, *registry, luajit::gct_table) : 0;
  return object_of(layout, raw_field(memory, layout, table, "_LOADED").value_or(0), luajit::gct_table);
}

std::optional<std::uint64_t> get_metafield(const Memory& memory, const LuajitLayout& layout, std::uint64_t object,
                                           const std::string& name) {
  Address address = object_of(layout, object, luajit::gct_table);
  if (address == 0) address = object_of(layout, object, luajit::gct_userdata);
  if (address == 0) return std::nullopt;
  return raw_field(memory, layout, read_ref(memory, layout, address + layout.tab_metatable).value_or(0), name);
}

std::optional<std::uint64_t> get_field(const Memory& memory, const LuajitLayout& layout, std::uint64_t object,
                                       Address key) {
  for (int i = 0; i < most_metatables; ++i) {
    if (const Address table = object_of(layout, object, luajit::gct_table)) {
      if (const auto value = raw_field(memory, layout, table, key)) return value;
    }
    const auto index = get_metafield(memory, layout, object, "__index");
    if (!index) return std::nullopt;
    object = *index;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> get_element(const Memory& memory, const LuajitLayout& layout, std::uint64_t object,
                                         std::uint32_t index) {
  const Address table = object_of(layout, object, luajit::gct_table);
  if (!plausible_pointer(table) || memory.get<std::uint8_t>(table + layout.L_gct) != luajit::gct_table)
    return std::nullopt;
  const std::uint32_t size = memory.get<std::uint32_t>(table + layout.tab_asize).value_or(0);
  const Address array = read_ref(memory, layout, table + layout.tab_array).value_or(0);
  if (index >= size || !plausible_pointer(array)) return std::nullopt;
  return memory.get<std::uint64_t>(array + index * value_size);
}

}  // namespace luaspy
