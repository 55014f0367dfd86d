#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/json_text.h"

namespace luaspy {
namespace {

// The shortest text that is read back as the same number, with a point or an exponent, as an integer has neither.
std::string text_of(double number) {
  constexpr double least_fixed = 1e-4, least_too_large = 1e15;
  const double size = std::abs(number);
  const bool is_fixed = size == 0 || (size >= least_fixed && size < least_too_large);
  const std::chars_format format = is_fixed ? std::chars_format::fixed : std::chars_format::scientific;
  char digits[32];
  const std::string text(digits, std::to_chars(digits, std::end(digits), number, format).ptr);
  return is_fixed && text.find('.') == text.npos ? text + ".0" : text;
}

// What `print_one` prints of each, in brackets.
template <typename All, typename PrintOne>
void print_all(std::string& out, const All& all, std::string_view brackets, const std::string& line_break,
               PrintOne print_one) {
  if (all.empty()) return void(out += brackets);
  const std::string inside = line_break.empty() ? "" : line_break + "  ";
  char before = brackets.front();
  for (const auto& one : all) {
    out += before;
    out += inside;
    print_one(one, inside);
    before = ',';
  }
  out += line_break;
  out += brackets.back();
}

}  // namespace

struct Json::Named {
  std::string key;
  Json value;
};

Json::Json() = default;
Json::Json(bool value) : value_(value) {}
Json::Json(double number) {
  if (std::isfinite(number)) value_ = number;
}
Json::Json(int number) : Json(static_cast<long long>(number)) {}
Json::Json(unsigned number) : Json(static_cast<unsigned long long>(number)) {}
Json::Json(long number) : Json(static_cast<long long>(number)) {}
Json::Json(unsigned long number) : Json(static_cast<unsigned long long>(number)) {}
Json::Json(long long number) : value_(std::int64_t{number}) {}
Json::Json(unsigned long long number) : value_(std::uint64_t{number}) {}
Json::Json(const char* text) : Json(std::string_view(text)) {}
Json::Json(std::string_view text) : value_(std::make_unique<std::string>(text)) {}
Json::Json(const std::string& text) : Json(std::string_view(text)) {}

Json::Json(std::initializer_list<Member> members) : value_(std::make_unique<std::vector<Named>>()) {
  for (const Member& member : members) (*this)[member.key] = std::move(member.value);
}

Json::Json(Json&&) noexcept = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::array() {
  Json json;
  json.value_ = std::make_unique<std::vector<Json>>();
  return json;
}
Json Json::object() { return std::initializer_list<Member>(); }

Json& Json::operator[](std::string_view key) {
  if (std::holds_alternative<std::monostate>(value_)) *this = object();
  for (Named& member : *std::get<Members>(value_)) {
    if (member.key == key) return member.value;
  }
  return add(std::string(key), Json());
}

Json& Json::add(Json element) {
  if (std::holds_alternative<std::monostate>(value_)) *this = array();
  return std::get<Elements>(value_)->emplace_back(std::move(element));
}

Json& Json::add(std::string key, Json value) {
  return std::get<Members>(value_)->emplace_back(Named{std::move(key), std::move(value)}).value;
}

// ---- Reading

bool Json::is_array() const { return std::holds_alternative<Elements>(value_); }

std::span<const Json> Json::elements() const {
  const auto* const elements = std::get_if<Elements>(&value_);
  return elements != nullptr ? std::span<const Json>(**elements) : std::span<const Json>();
}

const Json* Json::find(std::string_view key) const {
  const auto* const members = std::get_if<Members>(&value_);
  if (members == nullptr) return nullptr;
  const auto found = std::find_if((*members)->rbegin(), (*members)->rend(),
                                  [&](const Named& m) { return m.key == key; });
  return found != (*members)->rend() ? &found->value : nullptr;
}

const Json& Json::at(std::string_view key) const {
  static const Json null;
  const Json* const found = find(key);
  return found != nullptr ? *found : null;
}

const std::string* Json::as_text() const {
  const auto* const text = std::get_if<Text>(&value_);
  return text != nullptr ? text->get() : nullptr;
}

std::optional<bool> Json::as_bool() const {
  const auto* const value = std::get_if<bool>(&value_);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<std::uint64_t> Json::as_unsigned() const {
  const auto* const number = std::get_if<std::uint64_t>(&value_);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

// ---- Printing

void Json::print(std::string& out, const std::string& line_break) const {
  if (is_array()) {
    print_all(out, elements(), "[]", line_break,
              [&](const Json& element, const std::string& inside) { element.print(out, inside); });
  } else if (const auto* const members = std::get_if<Members>(&value_)) {
    print_all(out, **members, "{}", line_break, [&](const Named& member, const std::string& inside) {
      out += json_text(member.key) + (line_break.empty() ? ":" : ": ");
      member.value.print(out, inside);
    });
  } else if (const std::string* const text = as_text()) {
    out += json_text(*text);
  } else if (const std::optional<bool> value = as_bool()) {
    out += *value ? "true" : "false";
  } else if (const std::optional<std::uint64_t> whole = as_unsigned()) {
    out += std::to_string(*whole);
  } else if (const auto* const integer = std::get_if<std::int64_t>(&value_)) {
    out += std::to_string(*integer);
  } else {
    const auto* const number = std::get_if<double>(&value_);
    out += number != nullptr ? text_of(*number) : "null";
  }
}

std::string Json::text() const {
  std::string text;
  print(text, "\n");
  return text + '\n';
}

std::string Json::line() const {
  std::string line;
  print(line, "");
  return line + '\n';
}

}  // namespace luaspy
