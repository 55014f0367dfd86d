#pragma once
// How reports are written.

#include <string>

#include "base/display_text.h"
#include "base/paint.h"
#include "profile/amount_text.h"

namespace luaspy {

struct TextStyle {
  By by = By::samples;
  int top = 20;  // rows of a table
  Charset charset = Charset::utf8;
  Unit unit = Unit::nanoseconds;  // the profile's
  Paint paint{};                  // colours, if there is a terminal
};

std::string cost_text(std::int64_t cost, const TextStyle& style);
std::string_view cost_heading(const TextStyle& style);

// The first columns of a table, own and total costs as shares of `whole` and as amounts: their
// heads, a row, and how wide they are.
std::string cost_columns_head(const TextStyle& style);
std::string cost_columns(const Cost& cost, std::int64_t whole, const TextStyle& style);
std::size_t cost_columns_width(const TextStyle& style);

// The heading of a table, with its line break.
std::string heading(std::string_view text, const TextStyle& style);

// A function's text, safe for a terminal.
std::string shown(const std::string& text, const TextStyle& style);

}  // namespace luaspy
