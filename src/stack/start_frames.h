#pragma once
// The start of a process and of its threads: the same frames in every stack, which tell nothing.

#include "base/frame.h"

namespace luaspy {

// Marks the frames, outermost first, that come before main() or before the function of a thread, and
// the frames of the interpreter lua (lua.c: pmain) before its script. A main() without a symbol gets
// its name.
void mark_start(Stack& stack);

}  // namespace luaspy
