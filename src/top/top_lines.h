#pragma once
// Draws what TopView selects from TopCounts, as lines of styled text. Pure: the same input gives
// the same screen.

#include <string>
#include <vector>

#include "top/top_pane.h"
#include "top/top_view.h"

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

// Exactly `height` lines of at most `width` columns. What does not fit is cut; the view learns how
// many of its items fit.
std::vector<TopLine> draw_top(TopView& view, const TopCounts& counts, const TopTarget& target, TopSize size,
                              const TopPane& pane = {});

}  // namespace luaspy
