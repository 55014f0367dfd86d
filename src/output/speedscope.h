#pragma once
// speedscope's file format (https://www.speedscope.app/file-format-schema.json): one sampled
// profile for each thread, samples in the order of time, with their weights: the real time between
// ticks, bytes or objects. Equal samples that follow each other are merged.

#include "output/comparison.h"
#include "output/write_options.h"

namespace luaspy {

void write_speedscope(const Profile& profile, const WriteOptions& options, std::ostream& out);
// Both profiles in one file, side by side: speedscope shows one after the other, by the names of threads
// with "before: " and "after: ". Equal functions have equal colours.
void write_speedscope_diff(const Profile& before, const Profile& after, const Comparison& comparison,
                           const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
