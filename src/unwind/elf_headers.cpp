#include "unwind/elf_headers.h"

#include <elf.h>

#include <algorithm>

namespace luaspy {
namespace {

std::optional<Elf64_Ehdr> read_header(std::span<const std::byte> file) {
  if (file.size() < sizeof(Elf64_Ehdr)) return std::nullopt;
  const auto header = load<Elf64_Ehdr>(file, 0);
  const bool known = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                     header.e_ident[EI_DATA] == ELFDATA2LSB;
  return known ? std::optional(header) : std::nullopt;
}

// The i-th element of a table of the file; nullopt if it is not within the bytes.
template <typename T>
std::optional<T> element(std::span<const std::byte> file, std::uint64_t table, std::uint64_t i) {
  if (table > file.size() || i > file.size() / sizeof(T)) return std::nullopt;
  const std::uint64_t at = table + i * sizeof(T);
  if (at > file.size() || file.size() - at < sizeof(T)) return std::nullopt;
  return load<T>(file, at);
}

std::optional<std::span<const std::byte>> bytes_of(std::span<const std::byte> file, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS || section.sh_offset > file.size() ||
      section.sh_size > file.size() - section.sh_offset)
    return std::nullopt;
  return file.subspan(section.sh_offset, section.sh_size);
}

bool has_name_at(std::span<const std::byte> names, std::uint64_t at, std::string_view name) {
  if (at >= names.size()) return false;
  const auto own = names.subspan(at);
  return own.size() > name.size() && own[name.size()] == std::byte{0} &&
         std::memcmp(own.data(), name.data(), name.size()) == 0;
}

// With its bytes.
struct FoundSection {
  Elf64_Shdr header;
  std::span<const std::byte> bytes;
};

std::optional<FoundSection> section_named(std::span<const std::byte> file, std::string_view name) {
  const std::optional<Elf64_Ehdr> header = read_header(file);
  if (!header || header->e_shentsize != sizeof(Elf64_Shdr)) return std::nullopt;
  const auto at = [&](std::uint64_t i) { return element<Elf64_Shdr>(file, header->e_shoff, i); };
  const std::optional<Elf64_Shdr> names = at(header->e_shstrndx);
  const auto letters = names ? bytes_of(file, *names) : std::nullopt;
  if (!letters) return std::nullopt;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const std::optional<Elf64_Shdr> section = at(i);
    if (!section) break;
    const auto bytes = bytes_of(file, *section);
    if ((section->sh_flags & SHF_ALLOC) != 0 && bytes && has_name_at(*letters, section->sh_name, name))
      return FoundSection{*section, *bytes};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ElfHeaders> read_elf_headers(std::span<const std::byte> file) {
  const std::optional<Elf64_Ehdr> header = read_header(file);
  if (!header || header->e_phentsize != sizeof(Elf64_Phdr)) return std::nullopt;
  ElfHeaders headers;
  headers.entry = header->e_entry;
  const std::size_t count = std::min<std::size_t>(header->e_phnum, ElfHeaders::most_segments);
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<Elf64_Phdr> read = element<Elf64_Phdr>(file, header->e_phoff, i);
    if (!read) break;
    const Elf64_Phdr& segment = *read;
    headers.segments.push_back(
        {segment.p_type, segment.p_flags, segment.p_offset, segment.p_filesz, segment.p_vaddr, segment.p_memsz});
  }
  return headers;
}

std::optional<Section> find_section(std::span<const std::byte> file, std::string_view name) {
  const std::optional<FoundSection> found = section_named(file, name);
  return found ? std::optional(Section{found->header.sh_addr, found->header.sh_size}) : std::nullopt;
}

std::optional<Address> find_exported_function(std::span<const std::byte> file, std::string_view name) {
  const std::optional<FoundSection> symbols = section_named(file, ".dynsym"), names = section_named(file, ".dynstr");
  if (!symbols || !names) return std::nullopt;
  for (std::uint64_t i = 0; i < symbols->bytes.size() / sizeof(Elf64_Sym); ++i) {
    const auto symbol = load<Elf64_Sym>(symbols->bytes, i * sizeof(Elf64_Sym));
    const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
    if (is_function && has_name_at(names->bytes, symbol.st_name, name)) return symbol.st_value;
  }
  return std::nullopt;
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
