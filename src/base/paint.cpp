#include "base/paint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/display_text.h"

namespace luaspy {
namespace {

// Where the colour that begins at `at` ends; `at` if none begins there.
std::size_t end_of_colour(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) != "\x1b[") return at;
  const std::size_t end = text.find('m', at);
  return end == text.npos ? at : end + 1;
}

int width_without_colours(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = end_of_colour(text, i);
    if (end == i) plain += text[i++];
    i = std::max(i, end);
  }
  return columns(plain);
}

// Breaks one line.
void wrap_line(std::string_view line, int width, int hanging, std::string& out) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string margin(std::min(indent + static_cast<std::size_t>(hanging), static_cast<std::size_t>(width / 2)),
                           ' ');
  out += line.substr(0, indent);
  int used = static_cast<int>(indent);
  bool begins = true;  // nothing but the margin is in the line so far
  for (line.remove_prefix(indent); !line.empty();) {
    const std::size_t gap = std::min(line.find_first_not_of(' '), line.size()),
                      word = std::min(line.find(' ', gap), line.size()) - gap;
    const std::string_view text = line.substr(gap, word);
    const int needs = width_without_colours(text);
    if (!begins && used + static_cast<int>(gap) + needs > width) {
      out += '\n' + margin;
      used = static_cast<int>(margin.size());
    } else {
      out += line.substr(0, gap);
      used += static_cast<int>(gap);
    }
    out += text;
    used += needs;
    begins = false;
    line.remove_prefix(gap + word);
  }
}

}  // namespace

std::string Paint::operator()(Ink ink, std::string_view text) const {
  static constexpr std::array codes = {"", "1;36", "1", "2", "1;33", "1;31", "33", "32", "36"};
  if (!on_ || ink == Ink::plain || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(ink)], text);
}

Ink Paint::of_share(double percent) {
  constexpr double hot = 20, warm = 5;
  return percent >= hot ? Ink::hot : percent >= warm ? Ink::warm : Ink::plain;
}

std::string wrapped(std::string_view text, int width, int hanging) {
  if (width <= 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (width_without_colours(line) <= width) out += line;
    else wrap_line(line, width, hanging, out);
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace luaspy
