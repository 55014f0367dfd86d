#pragma once
// A raw recording as text that a page can carry.

#include <ostream>
#include <string_view>

namespace luaspy {

// Writes `raw` compressed (RFC 1952), in base64 (RFC 4648). Nothing if it is empty.
void write_packed(std::string_view raw, std::ostream& out);

}  // namespace luaspy
