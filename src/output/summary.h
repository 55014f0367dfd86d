#pragma once
// Some lines of text about a recording, printed at the end of `record` and at the beginning of
// `report`.

#include <string>

#include "base/mode.h"
#include "profile/profile.h"

namespace luaspy {

// Duration, samples, achieved rate, stop times, VM states, quality of the stacks, losses.
std::string summary_text(const Profile& profile);

// The functions that cost the most themselves, as a table; "" if there are no samples.
std::string hottest_text(const Profile& profile, Mode mode = Mode::all);

}  // namespace luaspy
