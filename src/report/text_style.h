#pragma once
// How reports are written.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/display_text.h"
#include "profile/function_table.h"

namespace luaspy {

struct TextStyle {
  By by = By::samples;
  int top = 20;  // rows of a table
  Charset charset = Charset::utf8;
};

// "365", or "3.65 s".
std::string cost_text(std::int64_t cost, By by);
// "Samples", or "Time".
std::string_view cost_heading(By by);
// A function's text, safe for a terminal.
std::string shown(const std::string& text, const TextStyle& style);

}  // namespace luaspy
