#pragma once
// The text that `perf script` prints by default: for each sample a line about it, then a line for each frame, innermost
// first, then an empty line.

#include <istream>
#include <string>
#include <string_view>

#include "base/result.h"
#include "input/recording_part.h"

namespace luaspy {

// Whether the first lines of a text may be of perf script.
bool is_perf_script(std::string_view head);

// The samples of the event that comes first; a sample of cpu-clock or task-clock stands for its period, others for
// themselves. Returns where the text is damaged, and how; "": it is whole.
Result<std::string> read_perf_script(std::istream& in, RecordingPart& part);

}  // namespace luaspy
