#pragma once
// A line of top's screen: text with a style for each part, and no cursor movements.

#include <cstdint>
#include <string>
#include <vector>

namespace luaspy {

enum class TopStyle : std::uint8_t {
  plain,
  bold,
  dim,
  heading,
  sorted,
  warning,
  key,
  hot,
  warm,
  lua,
  c,
  machine_code,
  collecting,
  compiling,
  no_lua,
  waiting,
  idle,  // activities, in this order; then who waits for a CPU, and nobody
  native,
  kernel,
  marker,
};

struct TopSpan {
  std::string text;
  TopStyle style = TopStyle::plain;
};
struct TopLine {
  std::vector<TopSpan> spans;
  bool selected = false;  // the cursor is here

  int width() const;  // columns
};

struct TopSize {
  int width = 80, height = 24;
  bool colours = true;  // false: what colours would show is shown in another way
};

}  // namespace luaspy
