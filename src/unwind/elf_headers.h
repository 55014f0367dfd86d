#pragma once
// The headers of an ELF file (System V gABI 4.1, chapters 4 and 5), read from untrusted bytes.
// 64-bit, little-endian.

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/memory.h"

namespace luaspy {

struct ProgramHeader {
  std::uint32_t type = 0, flags = 0;
  std::uint64_t offset = 0, file_size = 0;
  Address address = 0;  // as in the file: without the bias
  std::uint64_t memory_size = 0;
};

struct ElfHeaders {
  Address entry = 0;
  std::vector<ProgramHeader> segments;                   // at most most_segments
  static constexpr std::size_t most_segments = 1 << 10;  // linkers write about ten
};

// nullopt if it is not such a file. Program headers that are not within the bytes are left out.
std::optional<ElfHeaders> read_elf_headers(std::span<const std::byte> file);

struct Section {
  Address address = 0;  // as in the file
  std::uint64_t size = 0;
};

// The section of that name that is loaded, and has bytes in the file; nullopt without one, or without
// section headers (stripped by sstrip, or by a packer).
std::optional<Section> find_section(std::span<const std::byte> file, std::string_view name);

// The function of that name that the file exports (.dynsym), without the bias.
std::optional<Address> find_exported_function(std::span<const std::byte> file, std::string_view name);

// The bytes of a file, found by the addresses that the file gives them.
class LoadedBytes {
 public:
  LoadedBytes(std::span<const std::byte> file, const ElfHeaders& headers);
  // The bytes from `address` to the end of the segment that contains it, or to the last one that
  // the file has; empty if no segment contains it.
  std::span<const std::byte> from(Address address) const;

 private:
  struct Segment {
    Address start;
    std::span<const std::byte> bytes;
  };
  std::vector<Segment> segments_;
};

}  // namespace luaspy
