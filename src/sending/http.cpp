#include "sending/http.h"

#include <algorithm>
#include <cctype>

namespace luaspy {

std::string header_in(std::string_view lines, std::string_view name) {
  std::string value;
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const bool is_it = std::ranges::equal(line.substr(0, colon), name, [](unsigned char one, unsigned char other) {
      return std::tolower(one) == std::tolower(other);
    });
    line.remove_prefix(colon + 1);
    if (is_it) value = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  }
  return value;
}

}  // namespace luaspy
