#pragma once
// A launched command, once its recording is over.

#include <string>

#include "sampling/target_options.h"

namespace luaspy {

class ProcessTree;

// Waits for a command that luaspy has started, and says so if that is not over at once. Returns its exit status as a
// shell would report it. `ends_it`: asks it to end (SIGTERM); if it dies of that, the status is 0, as for a target that
// luaspy has not started.
int await_command(ProcessTree& tree, bool ends_it);

// The target, so that nothing is mixed into a profile that goes to standard output: what a command writes there goes to
// standard error then, which is said. `output`: where the profile goes.
TargetOptions with_output_kept(TargetOptions target, const std::string& output);

}  // namespace luaspy
