#pragma once
// What the parsers of LuaJIT's own profilers print of a stream (luajit -tm and luajit -ts of tarantool/luajit), so that
// scripts that read their text can read luaspy's.

#include <istream>
#include <string>

#include "base/result.h"

namespace luaspy {

struct MemprofTextOptions {
  bool leak_only = false;       // only what was not freed
  bool human_readable = false;  // sizes as "1.25KiB"
};

// An Error if the stream is of another profiler. `torn`: where it is damaged, and how; "": it is whole.
// Rows of equal numbers are in the order of their texts; the reference leaves it to chance.
Result<std::string> memprof_text(std::istream& in, const MemprofTextOptions& options, std::string& torn);
// A line for each stack, sorted. Differs from the reference: the calls of Lua are there, in their places, and a sample
// on a trace says which one, where the reference has an empty stack.
Result<std::string> sysprof_text(std::istream& in, std::string& torn);

}  // namespace luaspy
