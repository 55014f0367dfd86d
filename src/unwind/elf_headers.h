#pragma once
// What an ELF file says of itself at its beginning (System V gABI 4.1, chapters 4 and 5), read
// without trust in any byte of it. 64 bits, the lower byte first.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/memory.h"

namespace luaspy {

struct ProgramHeader {
  std::uint32_t type = 0, flags = 0;
  std::uint64_t offset = 0, file_size = 0;
  Address address = 0;  // as the file has it: without the bias
  std::uint64_t memory_size = 0;
};

struct ElfHeaders {
  Address entry = 0;
  std::vector<ProgramHeader> segments;                   // at most most_segments
  static constexpr std::size_t most_segments = 1 << 10;  // linkers make some ten
};

// nullopt if it is no such file. Program headers that are not within the bytes are left out.
std::optional<ElfHeaders> read_elf_headers(std::span<const std::byte> file);

// The bytes of a file by their addresses in it.
class LoadedBytes {
 public:
  LoadedBytes(std::span<const std::byte> file, const ElfHeaders& headers);
  // From `address` to the end of the segment that has it, as far as the file has bytes; empty: none
  // has.
  std::span<const std::byte> from(Address address) const;

 private:
  struct Segment {
    Address start;
    std::span<const std::byte> bytes;
  };
  std::vector<Segment> segments_;
};

}  // namespace luaspy
