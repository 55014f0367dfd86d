#pragma once
// Callgrind's format, version 1 (valgrind's manual, "Callgrind Format Specification"): costs of
// functions and lines, and of calls between them: samples, and what they weigh.
//
// Functions that have callers take their inclusive cost from the calls to them, in
// callgrind_annotate and in KCachegrind alike. So each thread is a function that calls its
// outermost ones, and of a stack in which a function is more than once only its outermost call
// counts: inclusive costs are those that costs() counts.

#include "output/format.h"

namespace luaspy {

void write_callgrind(const Profile& profile, const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
