#pragma once
// The instructions that call. AArch64; MachineCode says what these functions are for. Names and encodings:
// Arm Architecture Reference Manual for A-profile, C6.2.

#include "arch/machine_code.h"

namespace luaspy::aarch64 {

inline constexpr std::size_t instruction_bytes = 4;

// BL is a direct call; BLR, and BLRAA and its like (which authenticate the address), are indirect ones.
CallSite call_before(Address return_address, std::span<const std::byte> before);
std::optional<Address> direct_call_at(Address address, std::span<const std::byte> code);
std::optional<Address> direct_jump_at(Address address, std::span<const std::byte> code);  // B

}  // namespace luaspy::aarch64
