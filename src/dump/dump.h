#pragma once

#include "cli/options.h"

namespace luaspy {

// Prints the stack of every thread once, innermost frame first. The exit status.
Result<int> dump(const DumpOptions& options);

}  // namespace luaspy
