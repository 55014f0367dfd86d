#pragma once
// What a recording says about itself, asked of the target.

#include "base/mode.h"
#include "profile/profile.h"
#include "sampling/family.h"

namespace luaspy {

// Before the first sample.
About about_recording(Family& family, Mode mode, double rate, double max_stopped);

// The program of the target: a launched one may be a wrapper that executes another one. Nothing can
// be read of a process that has ended: it keeps what was known.
void tell_program(Family& family, About& about);
// The Luas that were found by now.
void tell_luas(Family& family, About& about);

}  // namespace luaspy
