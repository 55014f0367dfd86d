#pragma once

#include "cli/options.h"

namespace luaspy {

// Shows live, or as plain tables again and again, which functions take the time. The exit status.
Result<int> top(const TopOptions& options);

}  // namespace luaspy
