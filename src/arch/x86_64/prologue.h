#pragma once
// What a function's machine code says about its stack frame, for functions without call frame
// information. x86-64; MachineCode says what these functions are for.

#include "arch/machine_code.h"

namespace luaspy::x86_64 {

std::optional<FrameShape> shape_of_frame(std::span<const std::byte> code, std::size_t at);
bool ends_here(std::span<const std::byte> code);

}  // namespace luaspy::x86_64
