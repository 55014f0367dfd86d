#pragma once
// Firefox Profiler's processed profile format, version 56 (docs-developer/CHANGELOG-formats.md and
// src/types/profile.ts of github.com/firefox-devtools/profiler), which the site brings up to its
// own: a thread's samples in the order of time, in categories by kind of frame and state of the VM.
// Of time, samples are counted; of bytes and objects they weigh what they stand for.

#include "output/format.h"

namespace luaspy {

void write_firefox(const Profile& profile, const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
