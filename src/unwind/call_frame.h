#pragma once
// Call frame information as .eh_frame has it (LSB 5.0, 10.6; DWARF 5, 6.4), read from bytes of
// which none is trusted: every read is within them, the number of steps is bounded, and of
// registers only those that a FrameRow has are kept, whatever numbers are named.

#include <optional>

#include "unwind/elf_headers.h"
#include "unwind/frame_table.h"

namespace luaspy {

// What is said of one function: an FDE with what its CIE says. Addresses are the file's.
struct CallFrameEntry {
  Address start = 0, end = 0;                         // the function is [start, end)
  bool interrupted = false;                           // CIE: a signal handler's return
  std::uint8_t encoding = 0;                          // CIE: of addresses
  std::uint64_t code_factor = 1, return_address = 0;  // the latter: DWARF's number of a register
  std::int64_t data_factor = 1;
  std::span<const std::byte> initial, instructions;  // of the CIE, and its own
  Address instructions_at = 0;
};

// The entry of the function that contains `pc`, by the table at `header` (.eh_frame_hdr, of
// `header_size` bytes); nullopt if there is none, or in a form that no linker writes.
std::optional<CallFrameEntry> find_entry(const LoadedBytes& bytes, Address header, std::uint64_t header_size,
                                         Address pc);

// What it says at `pc`, on that processor. The CFA is unknown if that has no place in a row.
FrameRow row_at(const Machine& machine, const CallFrameEntry& entry, Address pc);

}  // namespace luaspy
