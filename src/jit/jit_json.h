#pragma once

#include <string>

#include "jit/jit_report.h"

namespace luaspy {

// One object, which docs/jit.schema.json describes.
std::string jit_json(const JitReport& report);
// An event as an object of its own, in a line: as those in `events` of the report.
std::string event_json(const JitSeen& seen, const JitEvent& event);

}  // namespace luaspy
