#pragma once
// Folded stacks: "main;f (a.lua:1);g (a.lua:9) 42", a line for each distinct stack. The number
// counts its samples; in a profile of bytes or objects it is their weight.

#include "output/comparison.h"
#include "output/write_options.h"

namespace luaspy {

void write_folded(const Profile& profile, const WriteOptions& options, std::ostream& out);

// A line for each stack of either profile: "main;f (a.lua:1) 31 33", as difffolded.pl writes it. By
// shares, these are counts of samples, those of `before` scaled to as many samples as `after` has.
// Otherwise they are ms, or numbers of bytes or objects; by rates, those of `before` are scaled to
// the duration of `after`.
void write_folded_diff(const Profile& before, const Profile& after, const Comparison& comparison,
                       const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
