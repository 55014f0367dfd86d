#pragma once
// Some lines of text about a recording, printed at the end of `record` and at the beginning of
// `report`.

#include <string>

#include "base/display_text.h"
#include "base/mode.h"
#include "profile/collector_cost.h"
#include "profile/profile.h"

namespace luaspy {

// Duration, samples, achieved rate, stop times, VM states, quality of the stacks, losses.
std::string summary_text(const Profile& profile);

// The functions that cost the most themselves, as a table; "" if there are no samples. Shares of bytes
// and objects, whose samples have weights, have how far they are off by chance at most, in points (95 %,
// share.h).
std::string hottest_text(const Profile& profile, Mode mode = Mode::all);

// What the garbage collector costs, by who allocates, as a table of so many rows.
std::string collector_text(const CollectorCost& cost, int rows, Charset charset = Charset::utf8);

}  // namespace luaspy
