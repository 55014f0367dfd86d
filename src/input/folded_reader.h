#pragma once
// Folded stacks: a line for each stack, "main;work;wait 12", outermost frame first (Brendan Gregg's FlameGraph).

#include <istream>
#include <string>

#include "base/result.h"
#include "input/recording_part.h"

namespace luaspy {

// Whether a line may be one of folded stacks.
bool is_folded(std::string_view line);

// Returns where the text is damaged, and how; "": it is whole.
Result<std::string> read_folded(std::istream& in, RecordingPart& part);

}  // namespace luaspy
