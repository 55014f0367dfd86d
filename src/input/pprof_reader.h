#pragma once
// Profiles of pprof: messages of profile.proto (github.com/google/pprof).

#include <istream>
#include <string>

#include "base/result.h"
#include "input/recording_part.h"

namespace luaspy {

// Returns where the message is damaged, and how; "": it is whole. An Error if it is another message.
Result<std::string> read_pprof(std::istream& in, RecordingPart& part);

}  // namespace luaspy
