#pragma once
// Saves a stop of a thread: for reports of what luaspy got wrong, and for the tests that keep it
// fixed.

#include <string>

#include "attach/target.h"
#include "base/result.h"
#include "stack/saved_stop.h"

namespace luaspy {

// Stops a running thread, or reads a sleeping one as it is, and keeps every byte that was read;
// `from` is a remark for whoever reads the file. Check `expected` before you trust it: it is
// luaspy's own result.
Result<SavedStop> capture_stop(Target& target, pid_t tid, const std::string& from);

}  // namespace luaspy
