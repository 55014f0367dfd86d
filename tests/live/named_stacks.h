#pragma once
// Recordings of programs, searched for the names of their functions.

#include <set>

#include "support/harness.h"

namespace luaspy::live {

// Some of all PUC Luas, and LuaJIT with its compiler on and off.
std::vector<Words> interpreters();

// The stacks of a recording of a running program.
struct NamedStacks {
  std::vector<FoldedStack> stacks;
  // The number of samples with a frame whose whole text is this.
  std::int64_t with(const std::string& frame) const;
  // The frames whose text contains this.
  std::set<std::string> frames_at(const std::string& place) const;
  std::set<std::string> frames() const { return frames_at({}); }
};

// Makes a raw recording (raw.luaspy in `folder`) that has enough samples; on a busy machine that
// takes longer.
NamedStacks record_names(const Running& running, const Folder& folder, std::int64_t enough = 60);

inline constexpr const char* say_ready = "io.stdout:write('READY\\n') io.stdout:flush() ";

}  // namespace luaspy::live
