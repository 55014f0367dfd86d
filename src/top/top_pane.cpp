#include "top/top_pane.h"

#include <utility>

namespace luaspy {

TopPane TopSources::pane_of(const std::optional<TopSeen>& seen) {
  constexpr std::size_t most = 100;  // frames: more than a screen shows
  TopPane pane;
  pane.open = true;
  pane.seen = seen.has_value();
  if (!seen) return pane;
  if (!lines_ || std::exchange(pid_, seen->pid) != seen->pid) lines_.emplace(SourceFiles(seen->pid));
  std::size_t i = seen->stack.size();
  while (i > 0 && pane.rows.size() < most) {
    --i;
    TopPane::Row& row = pane.rows.emplace_back(TopPane::Row{seen->stack[i], {}});
    if (row.frame.kind == Frame::Kind::lua && row.frame.line > 0)
      row.source = lines_->line(row.frame.file, row.frame.line);
  }
  pane.more = i;
  return pane;
}

}  // namespace luaspy
