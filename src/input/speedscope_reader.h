#pragma once
// The file format of speedscope (github.com/jlfwong/speedscope, its file-format-spec): profiles that are sampled, and
// those that have the beginnings and ends of calls.

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "input/recording_part.h"

namespace luaspy {

bool is_speedscope(const Json& file);

// Each profile of the file is a thread. Returns what is damaged, or "".
Result<std::string> read_speedscope(const Json& file, RecordingPart& part);

}  // namespace luaspy
