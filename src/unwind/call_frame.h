#pragma once
// Executes the instructions of a call frame entry (DWARF 5, 6.4.2). They are untrusted: every read is
// within them, the number of steps is bounded, and only the registers of a FrameRow are kept,
// whatever register numbers occur.

#include "unwind/call_frame_entry.h"
#include "unwind/frame_row.h"

namespace luaspy {

// The entry's row at `pc`, for that processor. Its CFA is unknown if a row cannot express the rules
// there.
FrameRow row_at(const Machine& machine, const CallFrameEntry& entry, Address pc);

}  // namespace luaspy
