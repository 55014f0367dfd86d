#include "base/sample.h"

#include <fmt/format.h>

namespace luaspy {

Quality& Quality::operator+=(const Quality& other) {
  for (const auto number : quality_numbers) this->*number += other.*number;
  return *this;
}

Quality& Quality::operator-=(const Quality& other) {
  for (const auto number : quality_numbers) this->*number -= other.*number;
  return *this;
}

std::string losses_text(const LossCounts& losses) {
  std::string text;
  for (std::size_t i = 1; i < loss_count; ++i) {
    if (losses[i] == 0) continue;
    std::string_view what = name(static_cast<Loss>(i));
    if (losses[i] == 1 && what.ends_with("ticks")) what.remove_suffix(1);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", losses[i], what);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace luaspy
