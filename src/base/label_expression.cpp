#include "base/label_expression.h"

#include <algorithm>

namespace luaspy {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_variable(std::string_view text) {
  return !text.empty() && !is_digit(text[0]) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

bool is_index(std::string_view text) {
  return !text.empty() && text.size() <= 2 && text[0] != '0' && std::ranges::all_of(text, is_digit);
}

bool is_label(std::string_view text) {
  return !text.empty() && is_letter(text[0]) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-'; });
}

}  // namespace

std::optional<LabelExpression> label_expression(std::string_view text) {
  constexpr std::size_t most_fields = 16, longest_field = 40;  // Lua keeps longer strings more than once
                                                               // (LUAI_MAXSHORTLEN)
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || !is_label(text.substr(0, equals))) return std::nullopt;
  LabelExpression expression{std::string(text.substr(0, equals)), {}};
  for (std::size_t at = equals + 1, end = 0; end != std::string_view::npos; at = end + 1) {
    end = text.find('.', at);
    std::string_view field = text.substr(at, end == std::string_view::npos ? end : end - at);
    const std::string_view variable = field.substr(0, field.find('['));
    if (!is_variable(variable) || variable.size() > longest_field) return std::nullopt;
    expression.path.emplace_back(variable);
    for (field.remove_prefix(variable.size()); !field.empty();) {
      const std::size_t close = field.find(']');
      const std::string_view index = field.substr(1, close == std::string_view::npos ? 0 : close - 1);
      if (field[0] != '[' || !is_index(index)) return std::nullopt;
      expression.path.emplace_back(index);
      field.remove_prefix(close + 1);
    }
  }
  if (expression.path.size() > most_fields) return std::nullopt;
  return expression;
}

}  // namespace luaspy
