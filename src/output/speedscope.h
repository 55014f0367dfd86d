#pragma once
// speedscope's file format (https://www.speedscope.app/file-format-schema.json): one sampled
// profile for each thread, samples in the order of time, with what they weigh: the real time
// between ticks, bytes or objects. Equal ones that follow each other are one.

#include "output/format.h"

namespace luaspy {

void write_speedscope(const Profile& profile, const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
