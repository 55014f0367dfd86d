#pragma once
// Text of a target as JSON.

#include <string>
#include <string_view>

namespace luaspy {

// In double quotes, escaped; what is not UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);
// In ASCII, and without characters that are special in HTML.
std::string json_in_html(std::string_view text);

}  // namespace luaspy
