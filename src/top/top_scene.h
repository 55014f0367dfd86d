#pragma once
// What a screen of top is drawn from, and the parts of the screen: top_head.cpp, top_body.cpp,
// top_help.cpp. The same scene gives the same lines. Of the view they change only how far it is
// scrolled.

#include <string>
#include <vector>

#include "top/top_line.h"
#include "top/top_pane.h"
#include "top/top_view.h"

namespace luaspy {

struct TopScene {
  TopView& view;
  const TopCounts& counts;
  const TopTarget& target;
  const TopPane& pane;
  TopSize size;

  bool is_narrow() const { return size.width < 70; }
  bool is_tiny() const { return size.width < 56; }  // no columns of times, so that there is room for names
  bool utf8() const { return view.charset() == Charset::utf8; }
  const char* dot() const { return utf8() ? " · " : " | "; }
  std::string margin() const { return is_narrow() ? "" : " "; }
  std::string clean(std::string_view text, std::size_t limit = 400) const {
    return displayable(text, view.charset(), limit);
  }
  std::int64_t elapsed() const { return view.part(counts.elapsed); }
};

// Above the table: the target, doubts, facts, what threads do, what is shown.
std::vector<TopLine> head_lines(const TopScene& scene);
// The table, or callers and callees, with headings; and the pane below it. At most `room` lines;
// the view learns how many of its items fit.
std::vector<TopLine> table_lines(const TopScene& scene, std::size_t room);
// The page of the key "?".
std::vector<TopLine> help_lines(const TopScene& scene);
// The last line: which keys there are.
TopLine footer_line(const TopScene& scene);

}  // namespace luaspy
