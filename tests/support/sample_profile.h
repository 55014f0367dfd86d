#pragma once
// A profile that has each kind of frame and state of the VM, two threads, a thread that ended,
// losses and hostile names; in time also two heaps. In bytes and objects it has the same samples,
// with weights from almost nothing to most of the total.

#include "profile/profile.h"

namespace luaspy {

inline Frame lua(std::string name, std::string file, int defined, int line) {
  return {Frame::Kind::lua, std::move(name), std::move(file), defined, line};
}
inline Frame native(std::string name, std::string file = "lua5.4") {
  return {Frame::Kind::native, std::move(name), std::move(file), 0, 0};
}

Profile sample_profile(Unit unit = Unit::nanoseconds);
// Its suspended coroutines, for formats that show when they waited.
void add_sample_tracks(Profile& profile);
// A profile with frames of the kernel, of a thread that executes and of one that sleeps, and its raw recording.
Profile kernel_profile();
std::string kernel_recording();
// The file that `record -f raw` would have written for it.
std::string sample_recording(Unit unit);

}  // namespace luaspy
