#pragma once
// Entries of .eh_frame (LSB 5.0, 10.6.1), read from untrusted bytes: every read is within them.

#include <optional>

#include "unwind/elf_headers.h"
#include "unwind/encoded_bytes.h"

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

// The entry of a function (FDE) at `at`; nullopt if there is none, or its form is one that linkers do not write.
std::optional<CallFrameEntry> read_entry(const LoadedBytes& bytes, Address at);

// Takes a pointer from `bytes`. `encoding`: DW_EH_PE_* (LSB 5.0, table 10.5); nullopt for those that
// linkers do not write. `is_length`: not relative to its place, whatever the encoding says.
std::optional<Address> read_pointer(EncodedBytes& bytes, unsigned encoding, bool is_length = false);

}  // namespace luaspy
