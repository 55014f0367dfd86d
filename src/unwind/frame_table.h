#pragma once
// The call frame information of an ELF file (call_frame_entry.h), read on demand.

#include "unwind/frame_index.h"
#include "unwind/frame_row.h"

namespace luaspy {

class FrameTable {
 public:
  // `file`: its bytes, which must outlive this object. `bias`: what is added to the file's
  // addresses to get the target's.
  FrameTable(std::span<const std::byte> file, Address bias);

  // In the file's addresses.
  const FrameIndex& index() const { return index_; }

  // The row at `pc`, which is in the function [start, end), in addresses of the target. The row's
  // CFA is unknown if there is no such row.
  FrameRow at(const Machine& machine, Address pc, Address start, Address end) const;

 private:
  FrameTable(std::span<const std::byte> file, const ElfHeaders& headers, Address bias);

  LoadedBytes bytes_;
  Address bias_;
  FrameIndex index_;
};

}  // namespace luaspy
