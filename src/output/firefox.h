#pragma once
// Firefox Profiler's processed profile format, version 56 (docs-developer/CHANGELOG-formats.md and
// src/types/profile.ts of github.com/firefox-devtools/profiler), which the site upgrades to its own
// version: a thread's samples in the order of time, in categories by kind of frame and state of the
// VM. In a profile of time samples are counted; in bytes and objects they have a weight.

#include "output/write_options.h"

namespace luaspy {

void write_firefox(const Profile& profile, const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
