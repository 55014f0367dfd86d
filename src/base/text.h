#pragma once
// Strings of a target made fit for people and files.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace luaspy {

// Valid UTF-8 without control characters: everything else becomes \xNN. At most `limit` bytes of
// input are kept; a cut is shown by "...".
std::string printable(std::string_view text, std::size_t limit = 200);

// As a Lua string literal in double quotes: the same with ", \ and newlines escaped. `whole`: how
// long the string is of which `text` is the beginning; where that is more, "…" and the length
// follow.
std::string quoted(std::string_view text, std::uint64_t whole);

// "lua5.4" of "/usr/bin/lua5.4".
std::string base_name(std::string_view path);

// Where each line of `text` begins, as Lua counts them; what follows the last one's end is one
// more.
std::vector<std::size_t> line_starts(std::string_view text);

}  // namespace luaspy
