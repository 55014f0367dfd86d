#pragma once
// Strings of a target made fit for people and files.

#include <string>
#include <string_view>

namespace luaspy {

// Valid UTF-8 without control characters: everything else becomes \xNN. At most `limit` bytes of input are kept; a cut
// is shown by "...".
std::string printable(std::string_view text, std::size_t limit = 200);

}  // namespace luaspy
