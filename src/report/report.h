#pragma once
// `luaspy report`: a raw recording converted to any format or shown as text, and differences
// between two.

#include "base/result.h"
#include "report/report_options.h"

namespace luaspy {

// Returns the exit status, or why there is no report.
Result<int> report(const ReportOptions& options);

}  // namespace luaspy
