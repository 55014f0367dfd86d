#pragma once
// Objects of Lua 5.4 in a memory of the test's own, as the row 5.4.3-5.4.9 has them
// (puc/layouts.cpp).

#include <bit>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "luastate/puc/puc_lua.h"

namespace luaspy {

class Image54 : public Memory {
 public:
  struct Tagged {
    Address word = 0;
    std::uint8_t tag = 0;
  };
  using Entries = std::vector<std::pair<Tagged, Tagged>>;

  static const PucLua& lua() {
    for (const Layout& row : layouts()) {
      if (row.name == "5.4.3-5.4.9") return puc_lua(row);
    }
    FAIL("no row for 5.4");
    throw 0;
  }

  bool read(Address address, std::span<std::byte> into) const override {
    if (address < base || address - base > bytes_.size() || into.size() > bytes_.size() - (address - base))
      return false;
    std::memcpy(into.data(), bytes_.data() + (address - base), into.size());
    return true;
  }
  template <typename T>
  void put(Address address, T value) {
    std::memcpy(bytes_.data() + (address - base), &value, sizeof value);
  }
  void put_text(Address string, std::string_view text) {
    std::memcpy(bytes_.data() + (string + row().string_data - base), text.data(), text.size());
  }

  Address object(std::size_t size, std::uint8_t tt) {
    const Address at = base + bytes_.size();
    bytes_.resize(bytes_.size() + (size + 16) / 16 * 16);
    put(at + object_tt, tt);
    return at;
  }
  Tagged string(std::string_view text) {
    constexpr std::uint8_t short_string = 0x04, long_string = 0x14, collectable = 0x40;
    const bool is_short = text.size() <= 40;  // LUAI_MAXSHORTLEN
    const Address at = object(row().string_data + text.size() + 1, is_short ? short_string : long_string);
    if (is_short) put(at + row().string_shrlen, static_cast<std::uint8_t>(text.size()));
    else put(at + row().string_len, std::uint64_t{text.size()});
    put_text(at, text);
    return {at, static_cast<std::uint8_t>((is_short ? short_string : long_string) | collectable)};
  }
  Tagged table(const Entries& entries, Address metatable = 0) {
    const std::size_t slots = std::bit_ceil(std::max<std::size_t>(entries.size(), 1));
    const Address nodes = object(slots * row().node_size, 0);
    for (std::size_t i = 0; i < entries.size(); ++i) put_entry(nodes, i, entries[i].first, entries[i].second);
    const Address at = object(56, 5);
    put(at + row().table_lsizenode, static_cast<std::uint8_t>(std::countr_zero(slots)));
    put(at + row().table_node, nodes);
    put(at + row().table_metatable, metatable);
    return {at, 69};
  }
  // The same, with keys that are strings.
  Tagged fields(const std::vector<std::pair<std::string, Tagged>>& fields, Address metatable = 0) {
    Entries entries;
    for (const auto& [key, value] : fields) entries.emplace_back(string(key), value);
    return table(entries, metatable);
  }
  Address nodes_of(Tagged table) const { return get<Address>(table.word + row().table_node).value(); }

  // `source`: a string, or 0.
  Address proto(int line, Address source = 0, std::vector<Address> children = {}) {
    const Address code = object(16, 0), at = object(row().p_size, row().tag_proto), p = object(8 * children.size(), 0);
    for (std::size_t i = 0; i < children.size(); ++i) put(p + 8 * i, children[i]);
    put(at + row().p_code, code);
    put(at + row().p_sizecode, std::uint32_t{1});
    put(at + row().p_linedefined, line);
    put(at + row().p_lastlinedefined, line);
    put(at + row().p_source, source);
    constexpr Offset p_sizep = 32, p_p = 72;  // lobject.h, Proto
    put(at + p_sizep, static_cast<std::uint32_t>(children.size()));
    put(at + p_p, p);
    return at;
  }
  Tagged closure(Address proto) {
    const Address at = object(40, row().tag_lclosure & 0x3f);
    put(at + row().lclosure_p, proto);
    return {at, row().tag_lclosure};
  }
  Tagged c_closure(Address function) {
    const Address at = object(40, row().tag_cclosure & 0x3f);
    put(at + row().cclosure_f, function);
    return {at, row().tag_cclosure};
  }
  Tagged light(Address function) const { return {function, row().tag_light_c}; }

  // A global_State whose registry has these modules, among them _G, and these further entries.
  Address state(std::vector<std::pair<std::string, Tagged>> modules,
                std::vector<std::pair<std::string, Tagged>> registry = {}) {
    modules.emplace_back("_G", fields({{"print", light(0x7000)}}));
    registry.emplace_back("_LOADED", fields(modules));
    const Tagged table = fields(registry);
    const Address G = object(512, 0);
    put(G + row().G_registry, table.word);
    put(G + row().G_registry + 8, table.tag);
    return G;
  }

 private:
  static constexpr Address base = 0x100000;
  static const Layout& row() { return lua().layout(); }
  void put_entry(Address nodes, std::size_t number, Tagged key, Tagged value) {
    const Address node = nodes + number * row().node_size;
    put(node + row().node_value, value.word);
    put(node + row().node_value + 8, value.tag);
    put(node + row().node_key_tt, key.tag);
    put(node + row().node_key, key.word);
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(16);
};

}  // namespace luaspy
