#pragma once
// Values of JSON whose content is not trusted: what is not there, or of another type, is empty.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace luaspy {

inline const nlohmann::json& value_at(const nlohmann::json& object, std::string_view key) {
  static const nlohmann::json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found != object.end() ? *found : nothing;
}
inline const nlohmann::json& array_at(const nlohmann::json& object, std::string_view key) {
  static const nlohmann::json nothing = nlohmann::json::array();
  const nlohmann::json& value = value_at(object, key);
  return value.is_array() ? value : nothing;
}
inline std::string text_at(const nlohmann::json& object, std::string_view key) {
  const nlohmann::json& value = value_at(object, key);
  return value.is_string() ? value.get_ref<const std::string&>() : std::string();
}
// 0 if it is none, or does not fit.
inline std::int64_t whole_at(const nlohmann::json& object, std::string_view key) {
  const nlohmann::json& value = value_at(object, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

}  // namespace luaspy
