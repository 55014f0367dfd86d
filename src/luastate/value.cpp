#include "luastate/value.h"

#include <array>

namespace luaspy {

// lua.h: LUA_TNIL to LUA_TTHREAD are 0 to 8 in all releases; the bits above are variants and
// BIT_ISCOLLECTABLE.
Value decode_value(const Layout& layout, std::uint64_t word, std::uint32_t tag) {
  using Type = Value::Type;
  constexpr std::uint32_t type_bits = 0x0f, collectable = 0x40, true_variant = 0x11;
  if (tag == layout.tag_float) return {Type::number, word};
  if (tag == layout.tag_integer) return {Type::integer, word};
  if (tag == layout.tag_light_c) return {Type::light_function, word};
  const std::uint32_t type = tag & type_bits;
  if (type == 0) return {Type::nil, 0};
  if (type == 1) return {Type::boolean, layout.boolean_variants ? tag == true_variant : (word & 0xffffffff) != 0};
  if (type == 2) return {Type::light_userdata, word};
  constexpr std::array objects = {Type::string, Type::table, Type::function, Type::userdata, Type::thread};  // from 4
                                                                                                             // on
  const bool is_object = layout.bytecode == Bytecode::lua51 || (tag & collectable) != 0;
  if (type < 4 || type > 8 || !is_object || !plausible_pointer(word)) return {Type::other, word};
  return {objects[type - 4], word};
}

// lj_obj.h, "Internal object tags": ~0 to ~12, above a reference of 47 or 32 bits; everything else
// is a number.
Value decode_value(const LuajitLayout& layout, std::uint64_t value) {
  using Type = Value::Type;
  constexpr std::uint64_t key_index = 0xfffe7fff;
  if (value >> 32 == key_index) return {Type::key_index, value & 0xffffffff};
  const int shift = layout.gc64 ? 47 : 32;
  const std::uint64_t payload = value & ((std::uint64_t{1} << shift) - 1);
  const auto itype = static_cast<std::uint32_t>(static_cast<std::int64_t>(value) >> shift);
  // LJ_TNUMX; the bounds of tvislightud on x64 without GC64.
  constexpr std::uint32_t lowest_type = ~13U, lowest_light = 0xffff0000U, highest_light = 0xffff7fffU;
  if (!layout.gc64 && itype >= lowest_light && itype <= highest_light)
    return {Type::light_userdata, value & ((std::uint64_t{1} << 47) - 1)};
  if (itype <= lowest_type) return {Type::number, value};
  constexpr std::array types = {Type::nil,   Type::boolean, Type::boolean, Type::light_userdata, Type::string,
                                Type::other, Type::thread,  Type::other,   Type::function,       Type::other,
                                Type::cdata, Type::table,   Type::userdata};
  const std::uint32_t type = ~itype;
  if (type >= types.size()) return {Type::other, payload};
  if (types[type] == Type::nil || types[type] == Type::boolean) return {types[type], type == 2};
  if (types[type] != Type::light_userdata && !plausible_pointer(payload, layout.gc64 ? 8 : 4))
    return {Type::other, payload};
  return {types[type], payload};
}

Value load_value(const Dialect& dialect, std::span<const std::byte> slots, std::size_t offset) {
  const auto word = load<std::uint64_t>(slots, offset);
  if (dialect.luajit != nullptr) return decode_value(*dialect.luajit, word);
  const std::uint32_t tag = dialect.puc->tt_size == 1 ? load<std::uint8_t>(slots, offset + 8)
                                                      : load<std::uint32_t>(slots, offset + 8);
  return decode_value(*dialect.puc, word, tag);
}

std::optional<Value> read_value(const Memory& memory, const Dialect& dialect, Address slot) {
  std::array<std::byte, 16> bytes;
  const auto some = std::span(bytes).first(slot_size(dialect));
  if (!plausible_pointer(slot) || !memory.read(slot, some)) return std::nullopt;
  return load_value(dialect, some, 0);
}

}  // namespace luaspy
