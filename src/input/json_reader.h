#pragma once
// Profiles in JSON: speedscope's files, and OpenTelemetry's messages, one in a line or one in a file.

#include <istream>
#include <string>
#include <string_view>

#include "base/result.h"
#include "input/recording_part.h"

namespace luaspy {

bool is_json(std::string_view head);

// Returns where the text is damaged, and how; "": it is whole. An Error if it is another kind of JSON.
Result<std::string> read_json(std::istream& in, RecordingPart& part);

}  // namespace luaspy
