#pragma once
// Saved stops (stop_file.h), read again and processed like a stop.

#include <string>

#include "luastate/detect.h"
#include "luastate/lua_inspector.h"
#include "stack/saved_stop.h"

namespace luaspy::replay {

using luaspy::SavedMemory;
using luaspy::SavedStop;

SavedStop load_stop(const std::string& path);

// The result of everything that follows a stop, for a saved one.
struct Outcome {
  Stack stack;
  Quality quality;
};
Outcome replay(const SavedStop& stop);
// The same, but the stop keeps only what LuaInspector::prefetch() requests.
Outcome replay_through_snapshot(const SavedStop& stop);

}  // namespace luaspy::replay
