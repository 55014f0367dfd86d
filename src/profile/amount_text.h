#pragma once
// The weight of samples as text for people. All such texts are made here, except on the flame graph
// page, whose own script makes them by the same rules (flamegraph/words.js).

#include <cstdint>
#include <string>
#include <string_view>

#include "profile/function_table.h"

namespace luaspy {

// "3.65 s", "1.2 MiB", "3,400 objects".
std::string amount_text(std::int64_t amount, Unit unit);

// The same in a table whose heading names what is counted: "365", "3.65 s", "1.2 MiB", "3,400".
std::string cost_text(std::int64_t cost, By by, Unit unit);
// That heading: "Samples", "Time", "Bytes", "Objects".
std::string_view cost_heading(By by, Unit unit);

// "1 sample", "2 samples".
std::string count_of(std::int64_t count, std::string_view noun);

}  // namespace luaspy
