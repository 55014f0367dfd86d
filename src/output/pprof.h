#pragma once
// pprof's format, gzip over the protobuf message perftools.profiles.Profile (proto/profile.proto of
// github.com/google/pprof): a sample for each thread, stack and state, with two values, samples and
// their weight (time, space or objects), or with others (WriteOptions::values); thread, process and
// state are its labels.

#include "output/write_options.h"

namespace luaspy {

void write_pprof(const Profile& profile, const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
