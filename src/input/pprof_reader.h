#pragma once
// Profiles of pprof, as bytes of profile.proto (github.com/google/pprof).

#include <string>
#include <string_view>

#include "base/result.h"
#include "input/recording_part.h"

namespace luaspy {

// Whether the bytes may be a profile of pprof, by the fields that its message has.
bool is_pprof(std::string_view bytes);

// Returns where the message is damaged, and how; "": it is whole.
Result<std::string> read_pprof(std::string_view bytes, RecordingPart& part);

}  // namespace luaspy
