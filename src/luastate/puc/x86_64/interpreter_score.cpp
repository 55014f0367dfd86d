// luaV_execute by its machine code. These are the instructions that compilers make of it for x86-64;
// for another processor they would be others, and have to be counted in another way.

#include <algorithm>

#include "luastate/puc/execute_code.h"

namespace luaspy {

int interpreter_score(std::span<const std::byte> code) {
  constexpr std::size_t smallest = 1500, largest = 1 << 17;
  if (code.size() < smallest || code.size() > largest) return 0;
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(code[i]); };
  int jumps = 0, masks = 0, shifts = 0;
  for (std::size_t i = 0; i + 3 <= code.size(); ++i) {
    if (byte(i) == 0xff && (byte(i + 1) & 0xf8) == 0xe0) ++jumps;  // jmp *reg
    if (byte(i) == 0xff && (byte(i + 1) & 0x3f) == 0x24) ++jumps;  // jmp *table(,reg,8)
    if (byte(i) == 0x83 && (byte(i + 1) & 0xf8) == 0xe0 && (byte(i + 2) == 0x3f || byte(i + 2) == 0x7f))
      ++masks;  // and reg, imm8
    // shr reg, imm8, with the positions of A, C, B in 5.1 to 5.3 (6, 14, 23) and of A, k, B, C from
    // 5.4 on (7, 15, 16, 24)
    if (byte(i) == 0xc1 && (byte(i + 1) & 0xf8) == 0xe8) {
      const unsigned count = byte(i + 2);
      shifts += count == 6 || count == 14 || count == 23 || count == 7 || count == 15 || count == 16 || count == 24;
    }
  }
  constexpr int enough_shifts = 20;
  if (jumps == 0 || masks == 0 || shifts < enough_shifts) return 0;
  return shifts + 4 * std::min(masks, 100) + static_cast<int>(code.size() / 256);
}

}  // namespace luaspy
