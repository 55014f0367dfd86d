#pragma once
// Makes a saved stop of a thread: for reports of what luaspy got wrong, and for the tests that hold
// the mending.

#include <string>

#include "attach/target.h"
#include "base/result.h"
#include "stack/saved_stop.h"

namespace luaspy {

// Stops a thread that runs, reads one that sleeps as it is, and keeps every byte that this took;
// `from` is a remark for whoever reads the file. Look at `expected` before you believe it: it is
// what luaspy made of it.
Result<SavedStop> capture_stop(Target& target, pid_t tid, const std::string& from);

}  // namespace luaspy
