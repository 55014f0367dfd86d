#pragma once
// Whether a run has become slower than another one: for a script that must fail then.

#include <string>
#include <vector>

#include "report/profile_diff.h"

namespace luaspy {

// The exit status that says so (docs/exit-codes.md): something was found, and nothing has failed.
inline constexpr int slower_status = 12;

// The functions that take more than `percent` more time than before, beyond chance, as texts: "join (a.lua:3) +38 %".
// One that is new counts if it takes that part of the time of the whole run before.
std::vector<std::string> slower(const ProfileDiff& diff, double percent);

}  // namespace luaspy
