#pragma once
// What a function that only reads memory reads. x86-64; MachineCode says what this is for.

#include "arch/machine_code.h"

namespace luaspy::x86_64 {

std::vector<Load> loads_of(std::span<const std::byte> code, Address function, Address argument, const Memory& memory);

}  // namespace luaspy::x86_64
