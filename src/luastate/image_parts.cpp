#include "luastate/image_parts.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace luaspy {
namespace {

// Neighbouring mappings of one image count as one.
bool covers(std::span<const ImagePart> mapped, Address from, Address to) {
  for (const ImagePart& part : mapped) {
    if (from >= to) return true;
    if (from >= part.start && from < part.end) from = part.end;
  }
  return from >= to;
}

}  // namespace

bool has_all_constant_parts(const Memory& memory, Address start, std::span<const ImagePart> mapped) {
  constexpr std::size_t most_headers = 64;
  const auto head = memory.get<Elf64_Ehdr>(start);
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_phentsize != sizeof(Elf64_Phdr) ||
      head->e_phnum > most_headers)
    return true;
  std::vector<Elf64_Phdr> headers(head->e_phnum);
  if (!memory.read(start + head->e_phoff, std::as_writable_bytes(std::span(headers)))) return true;
  std::erase_if(headers, [](const Elf64_Phdr& header) { return header.p_type != PT_LOAD; });
  if (headers.empty()) return true;
  // The file's first part is the one at the start of the image.
  const auto first = std::ranges::min_element(headers, {}, &Elf64_Phdr::p_vaddr);
  const Address bias = start - (first->p_vaddr - first->p_offset);
  return std::ranges::all_of(headers, [&](const Elf64_Phdr& header) {
    const bool is_constant = (header.p_flags & PF_R) != 0 && (header.p_flags & PF_W) == 0;
    return !is_constant || covers(mapped, bias + header.p_vaddr, bias + header.p_vaddr + header.p_filesz);
  });
}

}  // namespace luaspy
