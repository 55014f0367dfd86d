#pragma once
// The instructions that call: what is before a return address, and what a function of a shared
// object is called through. x86-64; MachineCode says what these functions are for.

#include "arch/machine_code.h"

namespace luaspy::x86_64 {

// Intel SDM vol. 2, CALL: E8 rel32 is a direct call; FF /2 is an indirect one, of 2 to 7 bytes with
// REX, SIB and displacement.
inline constexpr std::size_t longest_call = 7;  // bytes
CallSite call_before(Address return_address, std::span<const std::byte> before);
std::optional<Address> direct_call_at(Address address, std::span<const std::byte> code);

// The same, JMP: E9 rel32.
std::optional<Address> direct_jump_at(Address address, std::span<const std::byte> code);

// System V x86-64 ABI, 5.2: an entry of the procedure linkage table is jmp *offset(%rip), perhaps
// after endbr64 and with a bnd prefix.
inline constexpr std::size_t plt_entry_bytes = 16;
std::optional<Address> plt_slot(Address address, std::span<const std::byte> entry);

}  // namespace luaspy::x86_64
