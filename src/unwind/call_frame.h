#pragma once
// Call frame information in the form of .eh_frame (LSB 5.0, 10.6; DWARF 5, 6.4), read from
// untrusted bytes: every read is within them, the number of steps is bounded, and only the
// registers of a FrameRow are kept, whatever register numbers occur.

#include <optional>

#include "unwind/elf_headers.h"
#include "unwind/frame_table.h"

namespace luaspy {

// The information about one function: an FDE and its CIE. Addresses are those in the file.
struct CallFrameEntry {
  Address start = 0, end = 0;                         // the function is [start, end)
  bool interrupted = false;                           // CIE: a signal handler's return
  std::uint8_t encoding = 0;                          // CIE: encoding of addresses
  std::uint64_t code_factor = 1, return_address = 0;  // return_address: DWARF's number of a register
  std::int64_t data_factor = 1;
  std::span<const std::byte> initial, instructions;  // of the CIE, and of the FDE
  Address instructions_at = 0;
};

// Finds the entry of the function that contains `pc` in the table at `header` (.eh_frame_hdr,
// `header_size` bytes); nullopt if there is none, or its form is one that linkers do not write.
std::optional<CallFrameEntry> find_entry(const LoadedBytes& bytes, Address header, std::uint64_t header_size,
                                         Address pc);

// The entry's row at `pc`, for that processor. Its CFA is unknown if a row cannot express the rules
// there.
FrameRow row_at(const Machine& machine, const CallFrameEntry& entry, Address pc);

}  // namespace luaspy
