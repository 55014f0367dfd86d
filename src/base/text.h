#pragma once
// Strings of a target made fit for people and files.

#include <cstdint>
#include <string>
#include <string_view>

namespace luaspy {

// Valid UTF-8 without control characters: everything else becomes \xNN. At most `limit` bytes of input are kept; a cut
// is shown by "...".
std::string printable(std::string_view text, std::size_t limit = 200);

// As a Lua string literal in double quotes: the same with ", \ and newlines escaped. `whole`: how long the string is of which `text` is the
// beginning; where that is more, "…" and the length follow.
std::string quoted(std::string_view text, std::uint64_t whole);

}  // namespace luaspy
