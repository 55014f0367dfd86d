#include "base/sample.h"

#include <fmt/format.h>

namespace luaspy {

Quality& Quality::operator+=(const Quality& other) {
  for (const auto number : quality_numbers) this->*number += other.*number;
  return *this;
}

std::string losses_text(const LossCounts& losses) {
  std::string text;
  for (std::size_t i = 1; i < loss_count; ++i) {
    if (losses[i] != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", losses[i], name(static_cast<Loss>(i)));
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace luaspy
