#pragma once
// `luaspy push`: a recording to an engine that keeps profiles.

#include <string>
#include <vector>

#include "base/result.h"
#include "sending/engine_options.h"

namespace luaspy {

struct PushOptions {
  std::vector<std::string> files;  // recordings, each of which is sent by itself; "-": standard input
  EngineOptions engine;
  std::string service;   // service.name; "": the target's
  double patience = 30;  // s, until an engine that is busy or away is given up
};

// Names of functions, their files and lines leave this machine; values and the text of Lua files do not. Returns the
// exit status.
Result<int> push(const PushOptions& options);

}  // namespace luaspy
