#pragma once
// Text of a target as JSON.

#include <string>
#include <string_view>

namespace luaspy {

// In double quotes, escaped; bytes that are not UTF-8 become U+FFFD. `in_ascii`: so are characters
// that are not ASCII.
std::string json_text(std::string_view text, bool in_ascii = false);

}  // namespace luaspy
