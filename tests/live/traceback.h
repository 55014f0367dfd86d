#pragma once
// Stacks as debug.traceback() writes them, and their comparison with luaspy's.

#include <string>
#include <vector>

namespace luaspy::live {

// One line of a traceback, or one frame of a dump: the parts that both have.
struct Line {
  enum class Kind { lua, c, tail_calls, skipped } kind = Kind::lua;
  std::string file = {}, name = {};
  int line = 0;
  int defined = -1;  // where the function starts; -1 if not given
};

std::string base_name(const std::string& path);
std::vector<Line> parse_traceback(const std::vector<std::string>& text);
std::string text(const std::vector<Line>& lines);

// True if `ours` is `theirs`, whose skipped part (tracebacks show 10 and 11 frames of a deep stack)
// matches anything.
bool same_stack(const std::vector<Line>& theirs, const std::vector<Line>& ours);
bool same(const Line& theirs, const Line& ours);

}  // namespace luaspy::live
