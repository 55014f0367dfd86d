#pragma once
// Draws what TopView selects from TopCounts, as lines of styled text. Pure: the same input gives
// the same screen.

#include <string>
#include <vector>

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
  idle,  // activities, in this order
  native,
  marker,
};

struct TopSpan {
  std::string text;
  TopStyle style = TopStyle::plain;
};
struct TopLine {
  std::vector<TopSpan> spans;
  bool selected = false;  // the cursor is here
};

struct TopSize {
  int width = 80, height = 24;
  bool colours = true;  // false: what colours would show is shown in another way
};

// Exactly `height` lines of at most `width` columns. What does not fit is cut; the view learns how
// many of its items fit.
std::vector<TopLine> draw_top(TopView& view, const TopCounts& counts, const TopTarget& target, TopSize size);

// The following are used by the plain tables, too.
std::vector<std::string> doubts_of(const TopCounts& counts, const TopTarget& target);
double share(std::int64_t part, std::int64_t of);                                              // %; 0 if `of` is 0
std::string threads_text(const TopCounts& counts, const TopTarget& target, bool since_start);  // "4 threads, 2 ran"
std::string_view name(Activity activity);
// unknown, so that no number is shown: PUC Lua's collector until it has been seen. absent: machine
// code in PUC Lua.
enum class Told { yes, unknown, absent };
Told told(const TopCounts& counts, Activity activity);

}  // namespace luaspy
