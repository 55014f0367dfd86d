#include "luastate/luajit_layout.h"

namespace luaspy {

Address load_ref(const LuajitLayout& layout, std::span<const std::byte> bytes, std::size_t offset) {
  return layout.gc64 ? load<std::uint64_t>(bytes, offset) : load<std::uint32_t>(bytes, offset);
}

std::optional<Address> read_ref(const Memory& memory, const LuajitLayout& layout, Address address) {
  if (layout.gc64) return memory.get<std::uint64_t>(address);
  return memory.get<std::uint32_t>(address);
}

// lj_obj.h, "Internal object tags": with GC64 the type is in bits 47 to 63, above a 47-bit reference; else it is the upper word.
Address object_of(const LuajitLayout& layout, std::uint64_t value, std::uint8_t gct) {
  constexpr int type_shift_64 = 47, type_shift_32 = 32;
  const int shift = layout.gc64 ? type_shift_64 : type_shift_32;
  const std::uint64_t type = ~std::uint64_t{gct} & (~std::uint64_t{0} >> shift);
  if (value >> shift != type) return 0;
  return value & ((std::uint64_t{1} << shift) - 1);
}

}  // namespace luaspy
