#pragma once
// Tables of a profile: functions, lines, VM states, threads.

#include <optional>
#include <string>
#include <string_view>

#include "report/text_style.h"

namespace luaspy {

// Functions by their own cost, with their total cost.
std::string functions_text(const Profile& profile, const TextStyle& style);
// The same for their lines; "" if the profile has none.
std::string lines_text(const Profile& profile, const TextStyle& style);
// What the VM was doing, overall and in each function.
std::string states_text(const Profile& profile, const TextStyle& style);
// A row for each Lua, the largest heap first; "" if there is only one, of which the summary tells
// all.
std::string heaps_text(const Profile& profile, const TextStyle& style);
// Each thread, with its most expensive functions.
std::string threads_text(const Profile& profile, const TextStyle& style);
// The same for the values of a label; nullopt: no sample has that label.
std::optional<std::string> labels_text(const Profile& profile, std::string_view name, const TextStyle& style);

}  // namespace luaspy
