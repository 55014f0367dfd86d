#pragma once
// Text for the user, on standard error.

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace luaspy {

// If the text cannot be written (the terminal was closed, the disk is full), it is dropped: that is
// no reason to lose a profile. fmt::print would throw.
template <class... T>
void say(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace luaspy
