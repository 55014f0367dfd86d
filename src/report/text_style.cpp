#include "report/text_style.h"

#include <fmt/format.h>

#include <algorithm>

namespace luaspy {
namespace {

// "Own" and "Total" of samples; else "OwnTime", "TotalBytes".
std::string amount_head(std::string_view which, const TextStyle& style) {
  return fmt::format("{}{}", which, style.by == By::samples ? "" : cost_heading(style));
}

std::size_t amount_width(const TextStyle& style) {
  constexpr std::size_t least = 9;
  return std::max(amount_head("Total", style).size(), least);
}

}  // namespace

std::string cost_text(std::int64_t cost, const TextStyle& style) { return cost_text(cost, style.by, style.unit); }
std::string_view cost_heading(const TextStyle& style) { return cost_heading(style.by, style.unit); }

std::string cost_columns_head(const TextStyle& style) {
  const std::size_t width = amount_width(style);
  return fmt::format("   %Own  %Total {:>{}} {:>{}}", amount_head("Own", style), width, amount_head("Total", style),
                     width);
}

std::string cost_columns(const Cost& cost, std::int64_t whole, const TextStyle& style) {
  const std::size_t width = amount_width(style);
  const double own = percent(cost.own, whole);
  return fmt::format("  {}   {:5.1f} {:>{}} {:>{}}", style.paint(Paint::of_share(own), fmt::format("{:5.1f}", own)),
                     percent(cost.total, whole), cost_text(cost.own, style), width, cost_text(cost.total, style),
                     width);
}

std::size_t cost_columns_width(const TextStyle& style) { return cost_columns_head(style).size(); }

std::string heading(std::string_view text, const TextStyle& style) { return style.paint(Ink::heading, text) + '\n'; }

std::string shown(const std::string& text, const TextStyle& style) { return displayable(text, style.charset); }

}  // namespace luaspy
