#pragma once
// Callgrind's format, version 1 (valgrind's manual, "Callgrind Format Specification"): costs of
// functions and lines, and of calls between them, in samples and in their weight.
//
// Both callgrind_annotate and KCachegrind compute the inclusive cost of a function that has callers
// from the calls to it. Therefore each thread is written as a function that calls its outermost
// functions, and if a function is on a stack more than once, only its outermost call counts. So
// inclusive costs are the same as those of costs().

#include "output/write_options.h"

namespace luaspy {

void write_callgrind(const Profile& profile, const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
