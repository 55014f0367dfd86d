#pragma once

#include "cli/options.h"

namespace luaspy {

// Samples the target until it ends, the duration is over, or a signal asks to end; writes the profile, tells about it on standard
// error. The exit status: 0, or that of a launched command.
Result<int> record(const RecordOptions& options);

}  // namespace luaspy
