#include "unwind/frame_table.h"

#include <elf.h>

#include <algorithm>

#include "unwind/call_frame.h"

namespace luaspy {

FrameTable::FrameTable(std::span<const std::byte> file, Address bias)
    : FrameTable(file, read_elf_headers(file).value_or(ElfHeaders{}), bias) {}

FrameTable::FrameTable(std::span<const std::byte> file, const ElfHeaders& headers, Address bias)
    : bytes_(file, headers), bias_(bias) {
  for (const ProgramHeader& segment : headers.segments) {
    if (segment.type != PT_GNU_EH_FRAME) continue;
    const std::span<const std::byte> header = bytes_.from(segment.address);
    index_ = FrameIndex::of_table(header.first(std::min<std::uint64_t>(header.size(), segment.memory_size)),
                                  segment.address);
  }
  if (index_.size() != 0) return;
  if (const std::optional<Section> entries = find_section(file, ".eh_frame"))
    index_ = FrameIndex::of_entries(bytes_, entries->address, entries->size);
}

FrameRow FrameTable::at(const Machine& machine, Address pc, Address start, Address end) const {
  const std::optional<FrameIndex::Function> function = index_.find(pc - bias_);
  if (!function || pc < start || pc >= end) return {};
  const std::optional<CallFrameEntry> entry = read_entry(bytes_, function->entry);
  const bool has_pc = entry && pc - bias_ >= entry->start && pc - bias_ < entry->end;
  // The caller found [start, end) in the same table, but by other code, which may have read it
  // differently.
  const bool same_function = has_pc && entry->start + bias_ >= start && entry->end + bias_ <= end;
  return same_function ? row_at(machine, *entry, pc - bias_) : FrameRow{};
}

}  // namespace luaspy
