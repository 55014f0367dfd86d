#include "unwind/frame_table.h"

#include <elf.h>

#include "unwind/call_frame.h"

namespace luaspy {

FrameTable::FrameTable(std::span<const std::byte> file, Address bias)
    : FrameTable(file, read_elf_headers(file).value_or(ElfHeaders{}), bias) {}

FrameTable::FrameTable(std::span<const std::byte> file, const ElfHeaders& headers, Address bias)
    : bytes_(file, headers), bias_(bias) {
  for (const ProgramHeader& segment : headers.segments) {
    if (segment.type == PT_GNU_EH_FRAME) header_ = segment.address, header_size_ = segment.memory_size;
  }
}

FrameRow FrameTable::at(const Machine& machine, Address pc, Address start, Address end) const {
  if (header_size_ == 0 || pc < start || pc >= end) return {};
  const std::optional<CallFrameEntry> entry = find_entry(bytes_, header_, header_size_, pc - bias_);
  // The caller found [start, end) in the same table, but by other code, which may have read it
  // differently.
  const bool same_function = entry && entry->start + bias_ >= start && entry->end + bias_ <= end;
  return same_function ? row_at(machine, *entry, pc - bias_) : FrameRow{};
}

}  // namespace luaspy
