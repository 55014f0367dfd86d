#pragma once
// Text of a target as JSON.

#include <string>
#include <string_view>

namespace luaspy {

// In double quotes, escaped; bytes that are not UTF-8 become U+FFFD. `in_ascii`: so are characters
// that are not ASCII.
std::string json_text(std::string_view text, bool in_ascii = false);
// In ASCII, and without characters that are special in HTML.
std::string json_in_html(std::string_view text);

}  // namespace luaspy
