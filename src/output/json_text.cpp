#include "output/json_text.h"

#include <nlohmann/json.hpp>

namespace luaspy {

std::string json_text(std::string_view text, bool in_ascii) {
  return nlohmann::json(text).dump(-1, ' ', in_ascii, nlohmann::json::error_handler_t::replace);
}

}  // namespace luaspy
