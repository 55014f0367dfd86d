#pragma once
// Call instructions: the one before a return address, and the PLT entry through which a function of
// a shared object is called. x86-64.

#include <cstddef>
#include <optional>
#include <span>

#include "base/memory.h"

namespace luaspy {

// Intel SDM vol. 2, CALL: E8 rel32 is a direct call; FF /2 is an indirect one, 2 to 7 bytes long
// with REX, SIB and displacement.
struct CallSite {
  enum class Kind { none, direct, indirect } kind = Kind::none;
  Address target = 0;  // of a direct call
};
inline constexpr std::size_t longest_call = 7;  // bytes

// `before`: the bytes up to `return_address`. Data may look like a call.
CallSite call_before(Address return_address, std::span<const std::byte, longest_call> before);

// The target of the direct call at the start of `code`, which is at `address`; nullopt if there is
// no direct call.
std::optional<Address> direct_call_at(Address address, std::span<const std::byte> code);

// System V x86-64 ABI, 5.2: an entry of the procedure linkage table is jmp *offset(%rip), perhaps
// after endbr64 and with a bnd prefix. Returns the address of the word that holds the jump's
// destination; nullopt if there is no such entry at `address`.
inline constexpr std::size_t plt_entry_bytes = 16;
std::optional<Address> plt_slot(Address address, std::span<const std::byte, plt_entry_bytes> entry);

}  // namespace luaspy
