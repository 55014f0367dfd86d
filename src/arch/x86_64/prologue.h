#pragma once
// What a function's machine code says about its stack frame, for functions without call frame
// information. x86-64; MachineCode says what these functions are for.

#include "arch/machine_code.h"

namespace luaspy::x86_64 {

std::optional<FrameShape> shape_of_frame(std::span<const std::byte> code, std::size_t at);
bool ends_here(std::span<const std::byte> code);
bool returns_from_signal(std::span<const std::byte> code);
std::optional<std::int64_t> depth_of_straight_code(std::span<const std::byte> code, std::size_t after_call);

}  // namespace luaspy::x86_64
