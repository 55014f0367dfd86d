#include "luastate/tables.h"

#include <array>
#include <vector>

#include "luastate/prototype.h"

namespace luaspy {
namespace {

constexpr unsigned most_nodes_log2 = 16;
constexpr std::uint32_t tag_table = 5, tag_string = 4;  // lua.h, LUA_TTABLE, LUA_TSTRING
constexpr std::uint32_t collectable = 64;               // lobject.h of 5.2 and later, BIT_ISCOLLECTABLE

std::uint32_t read_tag(const Layout& layout, std::span<const std::byte> bytes, std::size_t offset) {
  return layout.tt_size == 1 ? load<std::uint8_t>(bytes, offset) : load<std::uint32_t>(bytes, offset);
}

}  // namespace

bool is_table_tag(const Layout& layout, std::uint32_t tag) {
  return tag == (layout.bytecode == Bytecode::lua51 ? tag_table : tag_table | collectable);
}

bool visit_table(const Memory& memory, const Layout& layout, TableForm form, Address table, const std::function<bool(const TableEntry&)>& visit) {
  const std::optional<std::uint8_t> log2 = memory.get<std::uint8_t>(table + form.lsizenode);
  const std::optional<Address> nodes = memory.get<Address>(table + form.node);
  if (!log2 || *log2 > most_nodes_log2 || !nodes || !plausible_pointer(*nodes)) return false;
  const std::size_t count = std::size_t{1} << *log2;
  std::vector<std::byte> bytes(count * layout.node_size);
  if (!memory.read(*nodes, bytes)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const auto node = std::span(bytes).subspan(i * layout.node_size, layout.node_size);
    // 5.3 and later mark strings with their variant in bit 4 (short 4, long 20).
    const std::uint32_t key_tag = layout.node_key_tt + 4u <= node.size() && layout.tt_size != 1
                                      ? load<std::uint32_t>(node, layout.node_key_tt)
                                      : load<std::uint8_t>(node, layout.node_key_tt);
    if ((key_tag & 0x0f) != tag_string) continue;
    const std::uint32_t tag = read_tag(layout, node, layout.node_value + 8u);
    if ((tag & 0x0f) == 0) continue;  // nil: a free or dead node
    std::optional<std::string> key = read_string(memory, layout, load<Address>(node, layout.node_key));
    if (!key) continue;
    if (!visit({std::move(*key), tag, load<Address>(node, layout.node_value)})) break;
  }
  return true;
}

Address loaded_table(const Memory& memory, const Layout& layout, TableForm form, Address G) {
  std::array<std::byte, 16> registry;
  if (!memory.read(G + layout.G_registry, registry) || !is_table_tag(layout, read_tag(layout, registry, 8))) return 0;
  Address loaded = 0;
  visit_table(memory, layout, form, load<Address>(registry, 0), [&](const TableEntry& entry) {
    if (entry.key == "_LOADED" && is_table_tag(layout, entry.tag)) loaded = entry.value;
    return loaded == 0;
  });
  return loaded;
}

std::optional<TableForm> find_table_form(const Memory& memory, const Layout& layout, Address G) {
  // The stock form; Redis and Valkey, whose Table has "int readonly" before lsizenode; the 5.1 and 5.2.0 order of fields.
  const std::array forms = {TableForm{layout.table_lsizenode, layout.table_node}, TableForm{16, 40}, TableForm{11, 32}};
  for (const TableForm form : forms) {
    const Address loaded = loaded_table(memory, layout, form, G);
    bool has_globals = false;
    if (loaded != 0) {
      visit_table(memory, layout, form, loaded, [&](const TableEntry& entry) {
        has_globals = entry.key == "_G";
        return !has_globals;
      });
    }
    if (has_globals) return form;
  }
  return std::nullopt;
}

}  // namespace luaspy
