#include "profile/amount_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace luaspy {
namespace {

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

// At most four digits, so that it fits into the columns of tables.
std::string bytes_text(std::int64_t bytes) {
  constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  constexpr double four_digits = 999.95, next_unit = 1023.5;  // limits allow for rounding
  if (bytes > -1024 && bytes < 1024) return fmt::format("{} B", bytes);
  double amount = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; std::abs(amount) >= next_unit; ++unit) amount /= 1024;
  return fmt::format("{:.{}f} {}", amount, std::abs(amount) < four_digits ? 1 : 0, units[unit]);
}

}  // namespace

std::string amount_text(std::int64_t amount, Unit unit) {
  switch (unit) {
    case Unit::nanoseconds:
      return fmt::format("{:.2f} s", static_cast<double>(amount) / 1e9);
    case Unit::bytes:
      return bytes_text(amount);
    case Unit::objects:
      break;
    case Unit::samples:
      return fmt::format("{} sample{}", grouped(amount), amount == 1 ? "" : "s");
  }
  return fmt::format("{} object{}", grouped(amount), amount == 1 ? "" : "s");
}

std::string cost_text(std::int64_t cost, By by, Unit unit) {
  if (by == By::samples) return std::to_string(cost);
  return unit == Unit::objects || unit == Unit::samples ? grouped(cost) : amount_text(cost, unit);
}

std::string count_of(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string_view cost_heading(By by, Unit unit) {
  constexpr std::array<std::string_view, unit_count> headings = {"Time", "Bytes", "Objects", "Samples"};
  return by == By::samples ? "Samples" : headings[static_cast<std::size_t>(unit)];
}

}  // namespace luaspy
