#pragma once
// A recording in some lines of text: what `record` ends with, and `report` begins with.

#include <string>

#include "profile/profile.h"

namespace luaspy {

// Duration, samples, rate reached, stop times, where the VM was, how good the stacks are, losses.
std::string summary_text(const Profile& profile);

// The functions that cost the most themselves, as a table; "" if there are no samples.
std::string hottest_text(const Profile& profile);

}  // namespace luaspy
