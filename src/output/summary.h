#pragma once
// Some lines of text about a recording, printed at the end of `record` and at the beginning of
// `report`.

#include <string>

#include "profile/profile.h"

namespace luaspy {

// Duration, samples, achieved rate, stop times, VM states, quality of the stacks, losses.
std::string summary_text(const Profile& profile);

// The functions that have the most samples of their own, as a table; "" if there are none.
std::string hottest_text(const Profile& profile);

}  // namespace luaspy
