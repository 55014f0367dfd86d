#pragma once

#include <string_view>

namespace luaspy {

inline constexpr std::string_view version = "0.1.0";

}  // namespace luaspy
