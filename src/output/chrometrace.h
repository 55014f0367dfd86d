#pragma once
// The Trace Event Format, for Perfetto and chrome://tracing. Each thread has two tracks: its stack
// as nested slices, and the state of its VM. Successive samples that share a frame are one slice of
// it.
//
// For time only: a slice only has a length in time, and there is no field for another weight.
// Profiles of bytes and objects are refused (Shows::time).

#include "output/write_options.h"

namespace luaspy {

void write_chrometrace(const Profile& profile, const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
