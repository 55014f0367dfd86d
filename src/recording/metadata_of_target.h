#pragma once
// What a recording says about itself, asked of the target.

#include "base/mode.h"
#include "profile/profile.h"

namespace luaspy {

class ProcessTree;

// Before the first sample.
Metadata about_recording(ProcessTree& tree, Mode mode, double rate, double max_stopped);

// The program of the target: a launched one may be a wrapper that executes another one. Nothing can
// be read of a process that has ended: it keeps what was known.
void describe_program(ProcessTree& tree, Metadata& about);
// The Luas that were found by now.
void describe_luas(ProcessTree& tree, Metadata& about);

}  // namespace luaspy
