#pragma once
// Draws what TopView says of TopCounts, as lines of styled text. Pure: the same input gives the
// same screen.

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
  bool colours = true;  // false: what only colours would tell is told otherwise
};

// Exactly `height` lines of at most `width` columns. What has no room is cut; the view is told how
// much of its items has.
std::vector<TopLine> draw_top(TopView& view, const TopCounts& counts, const TopTarget& target, TopSize size);

// Also what the plain tables have.
std::vector<std::string> doubts_of(const TopCounts& counts, const TopTarget& target);
double share(std::int64_t part, std::int64_t of);                                              // %; 0 of nothing
std::string threads_text(const TopCounts& counts, const TopTarget& target, bool since_start);  // "4 threads, 2 ran"
std::string_view name(Activity activity);
// Not known, so not claimed: PUC Lua's collector where no symbols are. Not there: machine code of
// PUC Lua.
enum class Told { yes, unknown, absent };
Told told(const TopCounts& counts, Activity activity);

}  // namespace luaspy
