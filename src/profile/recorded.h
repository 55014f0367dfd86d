#pragma once
// Facts about a recording, for formats that have a place for them.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/profile.h"

namespace luaspy {

// Names and values, in an order for people: the target, its Luas, how it was sampled, what was
// lost.
std::vector<std::pair<std::string, std::string>> recorded(const Profile& profile);

// A thread's process; the target if the thread does not name one.
int process_of(const Profile& profile, const ThreadInfo& thread);
// The command of that process.
const std::string& command_of(const Profile& profile, const ThreadInfo& thread);
// The name of the program in a command line, without its folder and arguments: "nginx" of "nginx: worker process".
std::string program_in(std::string_view command);

}  // namespace luaspy
