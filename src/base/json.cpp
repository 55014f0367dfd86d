#include "base/json.h"

#include <cassert>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/json_text.h"

namespace luaspy {
namespace {

// The shortest text that is read back as the same number, with a point or an exponent, as an integer has neither.
std::string text_of(double number) {
  if (!std::isfinite(number)) return "null";
  constexpr double least_fixed = 1e-4, least_too_large = 1e15;
  const double size = std::abs(number);
  const bool is_fixed = size == 0 || (size >= least_fixed && size < least_too_large);
  const std::chars_format format = is_fixed ? std::chars_format::fixed : std::chars_format::scientific;
  char digits[32];
  const std::string text(digits, std::to_chars(digits, std::end(digits), number, format).ptr);
  return is_fixed && text.find('.') == text.npos ? text + ".0" : text;
}

}  // namespace

Json::Json() : text_("null") {}
Json::Json(bool value) : text_(value ? "true" : "false") {}
Json::Json(double number) : text_(text_of(number)) {}
Json::Json(int number) : text_(std::to_string(number)) {}
Json::Json(unsigned number) : text_(std::to_string(number)) {}
Json::Json(long number) : text_(std::to_string(number)) {}
Json::Json(unsigned long number) : text_(std::to_string(number)) {}
Json::Json(long long number) : text_(std::to_string(number)) {}
Json::Json(unsigned long long number) : text_(std::to_string(number)) {}
Json::Json(const char* text) : text_(json_text(text)) {}
Json::Json(std::string_view text) : text_(json_text(text)) {}
Json::Json(const std::string& text) : text_(json_text(text)) {}

Json::Json(std::initializer_list<Member> members) : text_("{}") {
  for (const Member& member : members) (*this)[member.key] = std::move(member.value);
}

Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::array() {
  Json json;
  json.text_ = "[]";
  return json;
}
Json Json::object() { return std::initializer_list<Member>(); }

Json& Json::operator[](std::string_view key) {
  if (text_ == "null") text_ = "{}";
  assert(text_ == "{}");
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) return values_[i];
  }
  keys_.emplace_back(key);
  return values_.emplace_back();
}

Json& Json::add(Json element) {
  if (text_ == "null") text_ = "[]";
  assert(text_ == "[]");
  return values_.emplace_back(std::move(element));
}

std::string Json::printed(const std::string& line_break) const {
  if (values_.empty()) return text_;
  const std::string inside = line_break.empty() ? "" : line_break + "  ";
  std::string result;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    result += (i == 0 ? text_.front() : ',') + inside;
    if (!keys_.empty()) result += json_text(keys_[i]) + (line_break.empty() ? ":" : ": ");
    result += values_[i].printed(inside);
  }
  return result + line_break + text_.back();
}

std::string Json::text() const { return printed("\n") + '\n'; }
std::string Json::line() const { return printed("") + '\n'; }

}  // namespace luaspy
