#pragma once
// The text of a Lua file with what each line cost.

#include <map>

#include "base/result.h"
#include "report/text_style.h"

namespace luaspy {

struct LineCost {
  Cost cost;
  bool is_near = false;  // some of it is in machine code, whose lines are only approximate
};
// The costs of a file's lines (Frame::file), by line. Own: the line was innermost, so the cost of C
// functions that it calls is only in the total.
std::map<int, LineCost> line_costs(const Profile& profile, const std::string& file, By by);

// The Lua file (Frame::file) that matches `wanted`: the one with that name; else the only one of
// which one path is the end of the other. An error names some files.
Result<std::string> find_source(const Profile& profile, const std::string& wanted);

// `text` with the costs of its lines; lines far from any with costs are left out. Notes if text and
// costs do not seem to belong together.
std::string source_listing(std::string_view text, const std::map<int, LineCost>& lines, std::int64_t whole,
                           const TextStyle& style);

// The text of a file on disk. Sets `younger` to whether the file was written after `younger_than_s`
// (seconds since 1970).
Result<std::string> read_source(const std::string& path, std::int64_t younger_than_s, bool& younger);

}  // namespace luaspy
