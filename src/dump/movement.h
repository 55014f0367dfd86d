#pragma once
// What threads did between several looks at a process, to distinguish a hang from work.

#include <string>
#include <vector>

#include "dump/process_look.h"

namespace luaspy {

struct Movement {
  enum class Kind {
    stands_still,  // ran for next to no time, and is where it was in every look
    works,         // ran, or could have run if it had been given a CPU, for at least half of the time
    moves,         // neither
  } kind = Kind::moves;
  int tid = 0;
  std::string name;
  double cpu = 0, waited = 0;  // share of the time that it was on a CPU, and that it waited for one
  Stack inside;                // the frames, outermost first, that all looks begin with; without lines
  std::vector<int> lines;      // of the innermost Lua function among these, in the looks: ascending, each once
};

// One for each thread that is in all looks, in the order of the last look. `looks`: two or more, at
// one process.
std::vector<Movement> movements(const std::vector<ProcessLook>& looks);

constexpr std::string_view name(Movement::Kind kind) {
  return kind == Movement::Kind::stands_still ? "stands still" : kind == Movement::Kind::works ? "works" : "moves";
}

// The innermost frame of `kind` in a stack that is outermost first; nullptr if there is none.
const Frame* innermost(const Stack& stack, Frame::Kind kind);

}  // namespace luaspy
