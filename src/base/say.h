#pragma once
// Text for the user, on standard error.

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace luaspy {

// Where it cannot be written (the terminal was closed, the disk is full) it is not: that is no
// reason to lose a profile. fmt::print throws then.
template <class... T>
void say(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace luaspy
