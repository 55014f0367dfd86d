#pragma once
// The frame that stands where tail calls replaced others, and what it means.

#include <string_view>

namespace luaspy {

inline constexpr std::string_view tail_calls_name = "(...tail calls...)",
                                  tail_calls_meaning =
                                      "tail calls replaced callers here; which functions these were "
                                      "is not known";

}  // namespace luaspy
