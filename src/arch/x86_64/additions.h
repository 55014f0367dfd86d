#pragma once
// The instructions that add a constant to a register. x86-64; MachineCode says what this is for.

#include "arch/machine_code.h"

namespace luaspy::x86_64 {

std::array<int, Registers::most> additions(std::span<const std::byte> code, unsigned addend);

}  // namespace luaspy::x86_64
