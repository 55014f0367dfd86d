#include "luastate/puc/puc_tables.h"

#include <algorithm>
#include <array>
#include <bit>

#include "luastate/strings.h"

namespace luaspy {
namespace {

constexpr unsigned most_nodes_log2 = 16;                // limit for a table that is searched by name
constexpr unsigned most_log2 = 30;                      // ltable.c, MAXHBITS
constexpr std::uint32_t tag_table = 5, tag_string = 4;  // lua.h, LUA_TTABLE, LUA_TSTRING
constexpr std::uint32_t collectable = 64;               // lobject.h of 5.2 and later, BIT_ISCOLLECTABLE

std::uint32_t read_tag(const Layout& layout, std::span<const std::byte> bytes, std::size_t offset) {
  return layout.tt_size == 1 ? load<std::uint8_t>(bytes, offset) : load<std::uint32_t>(bytes, offset);
}

// Up to 5.3 a key is a TValue, later its tag is one byte (lobject.h, Node).
std::uint32_t key_tag(const Layout& layout, std::span<const std::byte> node) {
  return layout.tt_size != 1 ? load<std::uint32_t>(node, layout.node_key_tt)
                             : load<std::uint8_t>(node, layout.node_key_tt);
}

// ltable.c, luaH_realasize: alimit may be lower than the size, but not lower than the power of two
// before it.
std::uint32_t real_size(std::uint32_t alimit, bool is_size) {
  if (is_size || alimit > std::uint32_t{1} << most_log2) return alimit;
  return std::bit_ceil(alimit);
}

// Only the hash part, since names need nothing else.
std::optional<TableParts> read_nodes(const Memory& memory, TableForm form, Address table) {
  const std::optional<std::uint8_t> log2 = memory.get<std::uint8_t>(table + form.lsizenode);
  const std::optional<Address> nodes = memory.get<Address>(table + form.node);
  if (!log2 || *log2 > most_log2 || !nodes) return std::nullopt;
  TableParts parts;
  parts.nodes = *nodes;
  parts.node_count = plausible_pointer(*nodes) ? std::uint32_t{1} << *log2 : 0;
  // ltable.c: tables without a hash part share dummynode, a constant of the program. It is missing
  // from a core file whose program is not available.
  if (parts.node_count == 1 && !memory.get<std::uint64_t>(*nodes)) parts.node_count = 0;
  return parts;
}

// 5.5: Values grow downwards from `array`, their tags upwards, starting after an unsigned int
// (ltable.h, getArrVal, getArrTag).
std::optional<Value> value_apart(const Memory& memory, const PucLua& lua, const TableParts& parts, std::uint64_t i) {
  const std::optional<std::uint8_t> tag = memory.get<std::uint8_t>(parts.array + 4 + i);
  if (!tag || (*tag & 0x0f) == 0) return tag ? std::optional(Value{}) : std::nullopt;
  std::array<std::byte, 16> bytes;
  const auto value = std::span(bytes).first(lua.layout().value_tt);
  return memory.read(parts.array - value.size() * (i + 1), value) ? std::optional(lua.decode(value, *tag))
                                                                  : std::nullopt;
}

}  // namespace

TableForm PucLua::stock_table_form() const {
  return {layout_.table_lsizenode, layout_.table_node, layout_.table_sizearray, layout_.table_array,
          layout_.table_metatable};
}

std::optional<TableParts> PucLua::table_parts(const Memory& memory, TableForm form, Address table) const {
  constexpr std::size_t flags = 10;
  constexpr std::uint8_t not_the_size = 0x80;  // lobject.h of 5.4, BITRAS
  std::array<std::byte, 80> object;
  const auto fields = std::span(object).first(std::max({form.array, form.metatable, form.sizearray}) + sizeof(Address));
  if (!plausible_pointer(table)) return std::nullopt;
  std::optional<TableParts> read = read_nodes(memory, form, table);
  if (!read) return std::nullopt;
  // A saved stop may have no more of a table than was read when it was made.
  if (!memory.read(table, fields)) return read;
  if ((load<std::uint8_t>(fields, object_tt) & 0x3f) != tag_table) return std::nullopt;
  TableParts& parts = *read;
  parts.array = load<Address>(fields, form.array);
  const bool is_limited = layout_.array_form == ArrayForm::limited;
  parts.array_size = real_size(load<std::uint32_t>(fields, form.sizearray),
                               !is_limited || (load<std::uint8_t>(fields, flags) & not_the_size) == 0);
  if (!plausible_pointer(parts.array)) parts.array = parts.array_size = 0;
  parts.metatable = load<Address>(fields, form.metatable);
  return read;
}

bool PucLua::visit_array(const Memory& memory, const TableParts& parts, std::uint64_t count,
                         const std::function<bool(std::uint64_t index, const Value& value)>& visit) const {
  if (layout_.array_form != ArrayForm::apart) return Lua::visit_array(memory, parts, count, visit);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::optional<Value> value = value_apart(memory, *this, parts, i);
    if (!value) return false;
    if (!visit(i + 1, *value)) return true;
  }
  return true;
}

std::pair<Value, Value> PucLua::load_node(std::span<const std::byte> node) const {
  return {decode(node.subspan(layout_.node_key, layout_.value_tt), key_tag(layout_, node)),
          load_value(node, layout_.node_value)};
}

Address PucLua::globals_table(const Memory& memory, TableForm form, Address G, Address L) const {
  const auto table_at = [&](Address slot) {
    const std::optional<Value> value = read_value(memory, slot);
    return value && value->type == Value::Type::table ? value->word : Address{0};
  };
  if (layout_.L_gt != no_field) return table_at(L + layout_.L_gt);
  const std::optional<TableParts> parts = table_parts(memory, form, table_at(registry_slot(G)));
  if (!parts) return 0;
  constexpr std::uint64_t globals = 2;  // lua.h, LUA_RIDX_GLOBALS; the registry has an array part for it (lstate.c,
                                        // init_registry)
  Address found = 0;
  visit_entries(memory, *parts, globals + 1, [&](const Value& key, const Value& value) {
    if (key.type == Value::Type::integer ? key.word == globals : key.number() == globals)
      found = value.type == Value::Type::table ? value.word : 0;
    return found == 0;
  });
  return found;
}

bool is_table_tag(const PucLua& lua, std::uint32_t tag) {
  return tag == (lua.layout().bytecode == Bytecode::lua51 ? tag_table : tag_table | collectable);
}

bool visit_table(const Memory& memory, const PucLua& lua, TableForm form, Address table,
                 const std::function<bool(const TableEntry&)>& visit) {
  const std::optional<TableParts> parts = read_nodes(memory, form, table);
  if (!parts || parts->node_count > std::uint32_t{1} << most_nodes_log2 || !plausible_pointer(parts->nodes))
    return false;
  return visit_elements(
      memory, parts->nodes, lua.layout().node_size, parts->node_count, [&](std::span<const std::byte> node) {
        // 5.3 and later mark strings with their variant in bit 4 (short 4, long 20).
        if ((key_tag(lua.layout(), node) & 0x0f) != tag_string) return true;
        const std::uint32_t tag = read_tag(lua.layout(), node, lua.layout().node_value + lua.layout().value_tt);
        if ((tag & 0x0f) == 0) return true;  // nil: a free or dead node
        std::optional<std::string> key = read_string(memory, lua, load<Address>(node, lua.layout().node_key));
        const auto value = node.subspan(lua.layout().node_value, lua.layout().value_tt);
        return !key || visit({std::move(*key), tag, load<Address>(value, 0), value});
      });
}

Address loaded_table(const Memory& memory, const PucLua& lua, TableForm form, Address G) {
  std::array<std::byte, 32> bytes;
  const auto registry = std::span(bytes).first(lua.layout().value_size);
  if (!memory.read(G + lua.layout().G_registry, registry) ||
      !is_table_tag(lua, read_tag(lua.layout(), registry, lua.layout().value_tt)))
    return 0;
  Address loaded = 0;
  visit_table(memory, lua, form, load<Address>(registry, 0), [&](const TableEntry& entry) {
    if (entry.key == "_LOADED" && is_table_tag(lua, entry.tag)) loaded = entry.value;
    return loaded == 0;
  });
  return loaded;
}

std::optional<TableForm> PucLua::find_table_form(const Memory& memory, Address G) const {
  // The stock form; Redis and Valkey, whose Table has "int readonly" before lsizenode; the 5.1 and
  // 5.2.0 order of fields.
  const std::array forms = {stock_table_form(), TableForm{16, 40, 64, 32, 24}, TableForm{11, 32, 56, 24, 16}};
  for (const TableForm form : forms) {
    const Address loaded = loaded_table(memory, *this, form, G);
    bool has_globals = false;
    if (loaded != 0) {
      visit_table(memory, *this, form, loaded, [&](const TableEntry& entry) {
        has_globals = entry.key == "_G";
        return !has_globals;
      });
    }
    if (has_globals) return form;
  }
  return std::nullopt;
}

}  // namespace luaspy
