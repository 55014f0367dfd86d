#pragma once
// Memory that looks like a LuaJIT's compiler, as far as a test says.

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "luastate/jit_reader.h"
#include "luastate/luajit/jit_fields.h"
#include "support/luajit_layout.h"

namespace luaspy {

inline constexpr Address jit_start = 0x20000000, jit_G = jit_start + 0x400;

class JitWindow : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override {
    ++reads;
    if (address < jit_start || into.size() > bytes.size() || address - jit_start > bytes.size() - into.size())
      return false;
    std::ranges::copy(std::span(bytes).subspan(address - jit_start, into.size()), into.begin());
    return true;
  }
  template <typename T>
  void put(Address address, T value) {
    std::memcpy(bytes.data() + (address - jit_start), &value, sizeof value);
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(1 << 16);
  mutable std::int64_t reads = 0;
};

inline LuajitLayout jit_layout_of(bool gc64) {
  LuajitLayout layout = made_luajit_layout(gc64);
  layout.G_hookmask = gc64 ? 145 : 97;
  layout.first_header = 89;
  return layout;
}

inline constexpr Offset param_at = 2800;

// param, exitstubgroup, penalty: as in the release of 2022.
inline void put_parameters(JitWindow& memory) {
  constexpr std::int32_t values[] = {1000, 4000, 500, 100, 500, 0, 56, 10, 4, 4, 15, 3, 2, 32, 512};
  for (std::size_t i = 0; i < std::size(values); ++i) memory.put(jit_G + param_at + 4 * i, values[i]);
}
inline Address penalty_at(const LuajitLayout& layout, std::size_t slot) {
  return jit_G + param_at + 64 - param_at % 8 + 128 + slot * jit_layout::penalty_size(layout);
}
inline void put_penalty(JitWindow& memory, const LuajitLayout& layout, std::size_t slot, const JitPenalty& penalty) {
  const Address at = penalty_at(layout, slot);
  if (layout.gc64) memory.put(at, penalty.start);
  else memory.put(at, static_cast<std::uint32_t>(penalty.start));
  memory.put(at + layout.ref_size, static_cast<std::uint16_t>(penalty.value));
  memory.put(at + layout.ref_size + 2, static_cast<std::uint16_t>(penalty.reason));
}

// The main thread of the global_State.
inline void put_main_thread(JitWindow& memory, const LuajitLayout& layout) {
  const Address L = jit_G - layout.main_L_below;
  memory.put(L + layout.L_gct, luajit::gct_thread);
  if (layout.gc64) memory.put(L + layout.L_glref, jit_G);
  else memory.put(L + layout.L_glref, static_cast<std::uint32_t>(jit_G));
}

}  // namespace luaspy
