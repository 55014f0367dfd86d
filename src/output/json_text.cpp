#include "output/json_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace luaspy {

std::string json_text(std::string_view text, bool in_ascii) {
  return nlohmann::json(text).dump(-1, ' ', in_ascii, nlohmann::json::error_handler_t::replace);
}

std::string json_in_html(std::string_view text) {
  std::string safe;
  for (const char c : json_text(text, true)) {
    if (c == '<' || c == '>' || c == '&') safe += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else safe += c;
  }
  return safe;
}

}  // namespace luaspy
