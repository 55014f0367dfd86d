#include "report/text_style.h"

#include <fmt/format.h>

namespace luaspy {

std::string cost_text(std::int64_t cost, By by) {
  return by == By::samples ? fmt::format("{}", cost) : fmt::format("{:.2f} s", static_cast<double>(cost) / 1e9);
}
std::string_view cost_heading(By by) { return by == By::samples ? "Samples" : "Time"; }
std::string shown(const std::string& text, const TextStyle& style) { return displayable(text, style.charset); }

}  // namespace luaspy
