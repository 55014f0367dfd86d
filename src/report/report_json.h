#pragma once
// What `report` knows, for programs: JSON, as docs/report.schema.json describes it.

#include <string>

#include "profile/profile.h"
#include "report/profile_diff.h"

namespace luaspy {

// One recording: functions, lines, states, threads, heaps. `file`: its name.
// `suspended`: its suspended coroutines; or nullptr.
std::string profile_json(const std::string& file, const Profile& profile, const Profile* suspended = nullptr);

// What has changed from one recording to another, by profile_diff().
std::string diff_json(const std::string& file_before, const Profile& before, const std::string& file_after,
                      const Profile& after, const ProfileDiff& diff);

}  // namespace luaspy
