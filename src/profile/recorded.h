#pragma once
// What a profile says of itself, for the formats that have a place for it.

#include <string>
#include <utility>
#include <vector>

#include "profile/profile.h"

namespace luaspy {

// Names and values, in an order for people: the target, its Luas, how it was sampled, what was
// lost.
std::vector<std::pair<std::string, std::string>> recorded(const Profile& profile);

// A thread's process, which is the target where the thread does not say.
int process_of(const Profile& profile, const Profile::Thread& thread);
// Its command, too.
const std::string& command_of(const Profile& profile, const Profile::Thread& thread);

}  // namespace luaspy
