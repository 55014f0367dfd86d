#include "arch/aarch64/machine.h"

#include "arch/aarch64/calls.h"

namespace luaspy::aarch64 {
namespace {

constexpr std::uint8_t sp = Registers::sp_number, pc = Registers::pc_number;
constexpr std::uint8_t x(unsigned number) { return static_cast<std::uint8_t>(2 + number); }

constexpr std::array<std::string_view, 33> names = {"pc",  "sp",  "x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",
                                                    "x7",  "x8",  "x9",  "x10", "x11", "x12", "x13", "x14", "x15",
                                                    "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24",
                                                    "x25", "x26", "x27", "x28", "x29", "x30"};

// DWARF for the Arm 64-bit Architecture (AADWARF64), 4.1: x0 to x30, sp, pc.
constexpr std::array<std::uint8_t, 33> by_dwarf = [] {
  std::array<std::uint8_t, 33> table{};
  for (unsigned i = 0; i <= 30; ++i) table[i] = x(i);
  table[31] = sp, table[32] = pc;
  return table;
}();

// AAPCS64, 6.1.1: r19 to r29; r29 is the frame pointer.
constexpr std::array<std::uint8_t, 11> callee_saved = {x(19), x(20), x(21), x(22), x(23), x(24),
                                                       x(25), x(26), x(27), x(28), x(29)};
static_assert(callee_saved.size() <= Machine::most_callee_saved && names.size() <= Registers::most);

// The kernel is built for one of these (arch/arm64/Kconfig, ARM64_4K_PAGES and so on).
constexpr std::array<std::uint32_t, 3> page_sizes = {4096, 16384, 65536};

constexpr Machine described = {
    .name = "aarch64",
    .title = "AArch64",
    .elf_machine = 183,  // EM_AARCH64
    .register_names = names,
    .by_dwarf = by_dwarf,
    .dwarf_return_address = 30,  // x30, the link register
    .callee_saved = callee_saved,
    .frame_pointer_place = 10,
    .first_arguments = {x(0), x(1), x(2), x(3)},  // AAPCS64, 6.8.2
    .result = x(0),                               // 6.9
    .link_register = x(30),                       // 6.1.1: LR
    .red_zone = 0,                                // AAPCS64, universal stack constraints
    .page_sizes = page_sizes,
    // vm_arm64.dasc. BASE is callee-saved, so it stays there around calls. Instead of DISPATCH there
    // is GL, the global_State.
    .luajit = {.base = x(19), .c_base = x(19), .pc = x(21), .dispatch = x(22)},
    .kernel = {},
    .code =
        {
            .alignment = instruction_bytes,
            .call_bytes = instruction_bytes,
            .call_before = call_before,
            .direct_call_at = direct_call_at,
            .direct_jump_at = direct_jump_at,
        },
};

}  // namespace

const Machine& machine() { return described; }

}  // namespace luaspy::aarch64
