#pragma once
// The text of a Lua file with what each line cost.

#include <map>

#include "base/result.h"
#include "report/text_style.h"

namespace luaspy {

struct LineCost {
  Cost cost;
  bool is_near = false;  // some of it is of machine code, which knows its lines nearly only
};
// By line, of the Lua functions of a file (Frame::file). Own: the line was innermost, so what C
// functions cost that it calls is in the total only.
std::map<int, LineCost> line_costs(const Profile& profile, const std::string& file, By by);

// Names of Lua files (Frame::file) that `wanted` means: that one; else those that end so, or that
// it ends with, as paths. An error names some there are.
Result<std::string> find_source(const Profile& profile, const std::string& wanted);

// `text` with the costs of its lines; what is far from lines with costs is left out. Says if they
// do not seem to belong together.
std::string source_listing(std::string_view text, const std::map<int, LineCost>& lines, std::int64_t whole,
                           const TextStyle& style);

// The text of a file on disk. `younger_than_s`: told by `younger` is whether it was written after
// that time, since 1970.
Result<std::string> read_source(const std::string& path, std::int64_t younger_than_s, bool& younger);

}  // namespace luaspy
