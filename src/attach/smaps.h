#pragma once
// /proc/PID/smaps (proc(5)).

#include <string_view>

#include "base/resident_memory.h"

namespace luaspy {

// Parses the text of a /proc/PID/smaps file. Lines that do not fit are skipped, and so are mappings
// that overlap an earlier one. No pages are known then.
ResidentMemory parse_smaps(std::string_view text);

}  // namespace luaspy
