#pragma once
// RFC 4648, section 4.

#include <string>
#include <string_view>

namespace luaspy {

std::string base64(std::string_view bytes);

}  // namespace luaspy
