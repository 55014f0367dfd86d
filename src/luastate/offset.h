#pragma once
// The distance of a field from the start of its object, in bytes.

#include <cstdint>

namespace luaspy {

using Offset = std::uint16_t;
inline constexpr Offset no_field = 0xffff;  // this release does not have the field

}  // namespace luaspy
