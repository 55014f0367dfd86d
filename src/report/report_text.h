#pragma once
// Tables of a profile: functions, lines, VM states, threads.

#include "report/text_style.h"

namespace luaspy {

// Functions by what they cost themselves, and in all.
std::string functions_text(const Profile& profile, const TextStyle& style);
// The same of their lines; "" if the profile has none.
std::string lines_text(const Profile& profile, const TextStyle& style);
// What the VM was doing, in all and in each function.
std::string states_text(const Profile& profile, const TextStyle& style);
// Each thread, and what cost it most.
std::string threads_text(const Profile& profile, const TextStyle& style);

}  // namespace luaspy
