#pragma once
// The pane below the table: the latest stack in which the selected row was seen, with source lines.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attach/source_lines.h"
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
    std::string source;  // the text of its line; "": not known
  };
  bool open = false;
  bool seen = false;      // within the window
  std::vector<Row> rows;  // innermost first
};

// Reads the target's files, each once.
class TopSources {
 public:
  TopPane pane_of(const std::optional<TopSeen>& seen);

 private:
  std::map<int, SourceLines> of_process_;
};

}  // namespace luaspy
