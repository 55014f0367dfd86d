#pragma once
// `luaspy report`: a raw recording as any format, or as text; and what differs between two.

#include "cli/options.h"

namespace luaspy {

// The exit code, or why there is no report.
Result<int> report(const ReportOptions& options);

}  // namespace luaspy
