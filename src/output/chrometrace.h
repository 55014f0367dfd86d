#pragma once
// The Trace Event Format, for Perfetto and chrome://tracing: two tracks for each thread, its stack
// as nested slices, and the state of its VM. Samples without a break that share a frame are one
// slice of it.
//
// Of time only: a slice has a length in time and nothing else, and there is no place for what a
// sample weighs otherwise. Profiles of bytes and objects are refused (Shows::time).

#include "output/format.h"

namespace luaspy {

void write_chrometrace(const Profile& profile, const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
