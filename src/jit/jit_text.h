#pragma once

#include <string>

#include "jit/jit_report.h"

namespace luaspy {

// `rows`: of each table.
std::string jit_text(const JitReport& report, std::size_t rows);
// A line of --watch.
std::string event_text(const JitSeen& seen, const JitEvent& event);

}  // namespace luaspy
