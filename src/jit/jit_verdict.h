#pragma once

#include <string>

#include "jit/jit_report.h"

namespace luaspy {

// What a report says, in one sentence.
std::string jit_verdict(const JitReport& report);
double percent_of(std::int64_t part, std::int64_t all);

}  // namespace luaspy
