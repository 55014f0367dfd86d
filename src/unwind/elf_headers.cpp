#include "unwind/elf_headers.h"

#include <elf.h>

#include <algorithm>

namespace luaspy {

std::optional<ElfHeaders> read_elf_headers(std::span<const std::byte> file) {
  if (file.size() < sizeof(Elf64_Ehdr)) return std::nullopt;
  const auto header = load<Elf64_Ehdr>(file, 0);
  const bool known = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                     header.e_ident[EI_DATA] == ELFDATA2LSB;
  if (!known || header.e_phentsize != sizeof(Elf64_Phdr)) return std::nullopt;
  ElfHeaders headers;
  headers.entry = header.e_entry;
  const std::size_t count = std::min<std::size_t>(header.e_phnum, ElfHeaders::most_segments);
  for (std::size_t i = 0; i < count && header.e_phoff <= file.size(); ++i) {
    const std::uint64_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    if (at > file.size() || file.size() - at < sizeof(Elf64_Phdr)) break;
    const auto segment = load<Elf64_Phdr>(file, at);
    headers.segments.push_back(
        {segment.p_type, segment.p_flags, segment.p_offset, segment.p_filesz, segment.p_vaddr, segment.p_memsz});
  }
  return headers;
}

LoadedBytes::LoadedBytes(std::span<const std::byte> file, const ElfHeaders& headers) {
  for (const ProgramHeader& segment : headers.segments) {
    if (segment.type != PT_LOAD || segment.offset >= file.size()) continue;
    segments_.push_back(
        {segment.address,
         file.subspan(segment.offset, std::min<std::uint64_t>(segment.file_size, file.size() - segment.offset))});
  }
}

std::span<const std::byte> LoadedBytes::from(Address address) const {
  for (const Segment& segment : segments_) {
    if (address >= segment.start && address - segment.start < segment.bytes.size())
      return segment.bytes.subspan(address - segment.start);
  }
  return {};
}

}  // namespace luaspy
