#pragma once
// Draws what TopView selects from TopCounts, as lines of styled text. Pure: the same input gives
// the same screen.

#include <vector>

#include "top/top_line.h"
#include "top/top_pane.h"
#include "top/top_view.h"

namespace luaspy {

// Exactly `height` lines of at most `width` columns. What does not fit is cut; the view learns how
// many of its items fit.
std::vector<TopLine> draw_top(TopView& view, const TopCounts& counts, const TopTarget& target, TopSize size,
                              const TopPane& pane = {});

}  // namespace luaspy
