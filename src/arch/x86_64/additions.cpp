#include "arch/x86_64/additions.h"

#include "arch/x86_64/instruction.h"

namespace luaspy::x86_64 {

// Intel SDM: REX.W 83 /0 ib is add r64, imm8; REX.W 8D /r with an 8-bit displacement is lea r64,
// [r64 + disp8].
std::array<int, Registers::most> additions(std::span<const std::byte> code, unsigned addend) {
  std::array<int, Registers::most> count{};
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(code[i]); };
  for (std::size_t i = 0; i + 4 <= code.size(); ++i) {
    if ((byte(i) & 0xf8) != 0x48 || byte(i + 3) != addend) continue;
    const unsigned high = (byte(i) & 1) << 3, modrm = byte(i + 2);
    const bool add = byte(i + 1) == 0x83 && (modrm & 0xf8) == 0xc0;
    const bool lea = byte(i + 1) == 0x8d && modrm >> 6 == 1 && (modrm & 7) != 4;
    if (add || lea) ++count[encoded[high + (modrm & 7)]];
  }
  return count;
}

}  // namespace luaspy::x86_64
