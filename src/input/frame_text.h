#pragma once
// Frames of texts in which other formats keep them.

#include <string_view>

#include "base/frame.h"

namespace luaspy {

// The frame whose describe() text this is. Texts of other programs become native frames, Lua functions among them if
// they name a place "f (file:12)".
Frame frame_of(std::string_view text);

// Whether a native function of this name is what runs before main(), or before the function of a thread.
bool is_start_of_process(std::string_view name);

}  // namespace luaspy
