#pragma once
// The pane below the table: the latest stack in which the selected row was seen, with source lines.

#include <optional>
#include <string>
#include <vector>

#include "attach/source_lines.h"
#include "base/frame.h"
#include "top/top_counts.h"

namespace luaspy {

// Where the function of a row was seen last.
struct TopSeen {
  int pid = 0;
  Stack stack;  // outermost first
};

struct TopPane {
  struct Row {
    Frame frame;
    std::optional<SourceLine> source;
  };
  bool open = false;
  bool seen = false;      // within the window
  std::vector<Row> rows;  // innermost first
  std::size_t more = 0;   // further out
};

// Reads the target's files, each once, as long as it is asked for the same process.
class TopSources {
 public:
  TopPane pane_of(const std::optional<TopSeen>& seen);

 private:
  int pid_ = 0;
  std::optional<SourceLines> lines_;
};

}  // namespace luaspy
