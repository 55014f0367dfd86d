#pragma once
// Where a library has no symbols, an allocation's innermost frames are places in the Lua core, which say nothing.

#include "base/frame.h"

namespace luaspy {

// Outermost first. Frames without a symbol between the allocation and the Lua or C function that asked for it, all in
// the allocation's own module, become parts of the VM (Frame::Part): that function is shown as the one that
// allocates, and only Mode::all shows the frames. Frames with a symbol stay, as does everything if no function asked.
void fold_internals(Stack& stack);

}  // namespace luaspy
