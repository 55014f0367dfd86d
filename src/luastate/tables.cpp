#include "luastate/tables.h"

#include <array>
#include <vector>

#include "luastate/luajit_tables.h"
#include "luastate/strings.h"

namespace luaspy {
namespace {

constexpr unsigned most_nodes_log2 = 16;
constexpr std::uint32_t tag_table = 5, tag_string = 4;  // lua.h, LUA_TTABLE, LUA_TSTRING
constexpr std::uint32_t collectable = 64;               // lobject.h of 5.2 and later, BIT_ISCOLLECTABLE

std::uint32_t read_tag(const Layout& layout, std::span<const std::byte> bytes, std::size_t offset) {
  return layout.tt_size == 1 ? load<std::uint8_t>(bytes, offset) : load<std::uint32_t>(bytes, offset);
}

using LoadedVisitor = std::function<bool(const std::string& module, const std::string& name, Address key)>;

// The C function that `value` is, by its entry; 0 if it is anything else.
Address entry_of(const Memory& memory, const Layout& layout, const TableEntry& value) {
  if (value.tag == layout.tag_light_c) return value.value;
  if (value.tag != layout.tag_cclosure) return 0;
  if (layout.closure_isC != no_field && memory.get<std::uint8_t>(value.value + layout.closure_isC).value_or(0) == 0) return 0;
  return memory.get<Address>(value.value + layout.cclosure_f).value_or(0);
}

void visit_loaded_puc(const Memory& memory, const Layout& layout, Address G, const LoadedVisitor& visit) {
  const std::optional<TableForm> form = find_table_form(memory, layout, G);
  if (!form) return;
  visit_table(memory, layout, *form, loaded_table(memory, layout, *form, G), [&](const TableEntry& module) {
    bool more = true;
    if (const Address entry = entry_of(memory, layout, module)) more = visit(module.key, {}, entry);
    if (!more || !is_table_tag(layout, module.tag)) return more;
    visit_table(memory, layout, *form, module.value, [&](const TableEntry& function) {
      if (const Address entry = entry_of(memory, layout, function)) more = visit(module.key, function.key, entry);
      return more;
    });
    return more;
  });
}

void visit_loaded_luajit(const Memory& memory, const LuajitLayout& layout, Address G, const LoadedVisitor& visit) {
  const auto key_of = [&](std::uint64_t value) -> Address {
    const Address function = object_of(layout, value, luajit::gct_function);
    const auto read = function != 0 ? read_function(memory, layout, G, function) : std::nullopt;
    return read ? read->key : 0;
  };
  visit_table(memory, layout, loaded_table(memory, layout, G), [&](const std::string& module, std::uint64_t value) {
    bool more = true;
    if (const Address key = key_of(value)) more = visit(module, {}, key);
    const Address table = object_of(layout, value, luajit::gct_table);
    if (!more || table == 0) return more;
    visit_table(memory, layout, table, [&](const std::string& name, std::uint64_t function) {
      if (const Address key = key_of(function)) more = visit(module, name, key);
      return more;
    });
    return more;
  });
}

}  // namespace

void visit_loaded(const Memory& memory, const Dialect& dialect, Address G, const LoadedVisitor& visit) {
  if (dialect.luajit != nullptr) visit_loaded_luajit(memory, *dialect.luajit, G, visit);
  else visit_loaded_puc(memory, *dialect.puc, G, visit);
}

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
    std::optional<std::string> key = read_string(memory, {.puc = &layout}, load<Address>(node, layout.node_key));
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
