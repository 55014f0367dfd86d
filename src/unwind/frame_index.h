#pragma once
// Where the call frame information of each function of an ELF file is, read from untrusted bytes: by the
// table in .eh_frame_hdr (LSB 5.0, 10.6.2); or, where the linker wrote none, by what .eh_frame itself says.
// gcc asks for no table where it links with -static and without PIE (its specs: LINK_EH_SPEC).

#include <optional>

#include "unwind/elf_headers.h"

namespace luaspy {

class FrameIndex {
 public:
  FrameIndex() = default;  // of a file without call frame information
  // `header`: the bytes of .eh_frame_hdr, which is at `at`. They must outlive this. Empty if the table's form
  // is one that linkers do not write.
  static FrameIndex of_table(std::span<const std::byte> header, Address at);
  // Looks through all entries of .eh_frame, which is at `at`.
  static FrameIndex of_entries(const LoadedBytes& bytes, Address at, std::uint64_t size);

  struct Function {
    Address start = 0, entry = 0;  // entry: where its information is (read_entry())
  };
  // Ascending by start, if the linker was right.
  std::size_t size() const { return pairs().size() / pair_size; }
  Function operator[](std::size_t i) const;
  // The last function that starts at or before `pc`.
  std::optional<Function> find(Address pc) const;

  // The form of the table in .eh_frame_hdr, for libunwind: pairs of std::int32_t, to which base() is added.
  static constexpr std::size_t pair_size = 8;
  std::span<const std::byte> pairs() const { return made_.empty() ? table_ : std::as_bytes(std::span(made_)); }
  Address base() const { return base_; }

 private:
  struct Pair {
    std::int32_t start, entry;
  };
  static_assert(sizeof(Pair) == pair_size);

  Address base_ = 0;
  std::span<const std::byte> table_;
  std::vector<Pair> made_;
};

}  // namespace luaspy
