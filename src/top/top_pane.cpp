#include "top/top_pane.h"

#include <algorithm>

namespace luaspy {

TopPane TopSources::pane_of(const std::optional<TopSeen>& seen) {
  constexpr std::size_t most = 100;  // frames: more than a screen shows
  TopPane pane;
  pane.open = true;
  pane.seen = seen.has_value();
  if (!seen) return pane;
  for (std::size_t i = seen->stack.size(); i-- > 0;) {
    TopPane::Row& row = pane.rows.emplace_back(TopPane::Row{seen->stack[i], {}});
    if (row.frame.kind != Frame::Kind::lua || row.frame.line <= 0 || pane.rows.size() > most) continue;
    SourceLines& lines = of_process_.try_emplace(seen->pid, SourceFiles(seen->pid)).first->second;
    if (const std::optional<SourceLine> line = lines.line(row.frame.file, row.frame.line)) row.source = line->text;
  }
  return pane;
}

}  // namespace luaspy
