#pragma once
// ELF files with call frame information, of any processor, made by hand; and a stack for them.

#include <elf.h>

#include <cstring>
#include <vector>

#include "base/memory.h"

namespace luaspy {

using Bytes = std::vector<std::uint8_t>;

// The contents of a CIE, with the rules that compilers always write. x86-64: the CFA is rsp + 8, and the
// return address is right below it.
inline const Bytes x86_64_rules = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1};
inline const Bytes x86_64_signal_rules = {1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1};
// AArch64: the CFA is sp, and the return address is in x30.
inline const Bytes aarch64_rules = {1, 'z', 'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0};

struct FunctionWithFrames {
  Address at;  // in the file
  std::uint32_t size;
  Bytes instructions;  // of its FDE
};

inline constexpr Address header_at = 0x100, frames_at = 0x200;  // .eh_frame_hdr, .eh_frame

template <typename T>
void put(std::vector<std::byte>& file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

// An entry of .eh_frame: its length, what links it, and its contents, filled up with DW_CFA_nop.
inline std::size_t put_entry(std::vector<std::byte>& file, std::size_t at, std::uint32_t link, Bytes contents) {
  while (contents.size() % 8 != 0) contents.push_back(0);
  put(file, at, static_cast<std::uint32_t>(contents.size() + 4));
  put(file, at + 4, link);
  for (std::size_t i = 0; i < contents.size(); ++i) put(file, at + 8 + i, contents[i]);
  return at + 8 + contents.size();
}

// 4 KiB without section headers, in one segment. `functions`: ascending; none: it has no information.
inline std::vector<std::byte> file_with_frames(std::uint16_t machine, const Bytes& cie,
                                               const std::vector<FunctionWithFrames>& functions) {
  std::vector<std::byte> file(0x1000);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB, header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN, header.e_machine = machine, header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header, header.e_ehsize = sizeof header, header.e_phentsize = sizeof(Elf64_Phdr),
  header.e_phnum = functions.empty() ? 1 : 2;
  put(file, 0, header);
  put(file, sizeof header, Elf64_Phdr{PT_LOAD, PF_R | PF_X, 0, 0, 0, file.size(), file.size(), 0x1000});
  if (functions.empty()) return file;
  const std::size_t header_size = 12 + 8 * functions.size();
  put(file, sizeof header + sizeof(Elf64_Phdr),
      Elf64_Phdr{PT_GNU_EH_FRAME, PF_R, header_at, header_at, header_at, header_size, header_size, 4});
  put(file, header_at, std::uint32_t{0x3b031b01});
  put(file, header_at + 4, static_cast<std::int32_t>(frames_at - (header_at + 4)));
  put(file, header_at + 8, static_cast<std::uint32_t>(functions.size()));

  std::size_t at = put_entry(file, frames_at, 0, cie), row = header_at + 12;
  for (const FunctionWithFrames& function : functions) {
    Bytes fde(9);
    const auto start = static_cast<std::int32_t>(function.at - (at + 8));
    std::memcpy(fde.data(), &start, 4);
    std::memcpy(fde.data() + 4, &function.size, 4);
    fde.insert(fde.end(), function.instructions.begin(), function.instructions.end());
    put(file, row, static_cast<std::int32_t>(function.at - header_at));
    put(file, row + 4, static_cast<std::int32_t>(at - header_at));
    row += 8;
    at = put_entry(file, at, static_cast<std::uint32_t>(at + 4 - frames_at), fde);
  }
  return file;
}

class OneStack : public Memory {
 public:
  explicit OneStack(std::vector<Address> words) : words_(std::move(words)) {}
  bool read(Address address, std::span<std::byte> into) const override {
    const auto bytes = std::as_bytes(std::span(words_));
    if (address < start || address - start > bytes.size() || into.size() > bytes.size() - (address - start))
      return false;
    std::memcpy(into.data(), bytes.data() + (address - start), into.size());
    return true;
  }
  static constexpr Address start = 0x7000;

 private:
  std::vector<Address> words_;
};

}  // namespace luaspy
