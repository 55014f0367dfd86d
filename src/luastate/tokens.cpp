#include "luastate/tokens.h"

#include <algorithm>
#include <array>

namespace luaspy {
namespace {

// llex.c, luaX_tokens. `goto` is a name in 5.1, and `global` in all but 5.5: neither begins or ends
// a block.
constexpr std::array<std::string_view, 21> keywords = {"and", "break",    "do",     "else", "elseif", "end",   "false",
                                                       "for", "function", "if",     "in",   "local",  "nil",   "not",
                                                       "or",  "repeat",   "return", "then", "true",   "until", "while"};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

bool is_name(std::string_view text) {
  constexpr std::string_view keyword_since_52 = "goto";
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  return !text.empty() && !is_digit(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return is_ascii(c) && (is_letter(c) || is_digit(c)); }) &&
         std::ranges::find(keywords, text) == keywords.end() && text != keyword_since_52;
}

Tokens::Tokens(std::string_view source) : source_(source) {
  if (source_.starts_with("\xef\xbb\xbf")) at_ = 3;
  if (at(at_) == '#') skip_line();
}

// llex.c, inclinenumber: "\r\n" and "\n\r" are one line break.
void Tokens::pass_line_break() {
  const char first = source_[at_++];
  if (at_line_break() && source_[at_] != first) ++at_;
  ++line_;
}

std::size_t Tokens::long_bracket() const {
  std::size_t end = at_ + 1;
  while (at(end) == '=') ++end;
  return at(end) == '[' ? end - at_ + 1 : 0;
}

std::string_view Tokens::pass_long_string(std::size_t bracket) {
  at_ += bracket;
  const std::size_t start = at_;
  while (at_ < source_.size()) {
    if (at_line_break()) {
      pass_line_break();
      continue;
    }
    if (source_[at_++] != ']') continue;
    std::size_t end = at_;
    while (at(end) == '=') ++end;
    if (at(end) != ']' || end - at_ + 2 != bracket) continue;
    const std::string_view text = source_.substr(start, at_ - 1 - start);
    at_ = end + 1;
    return text;
  }
  return source_.substr(start);
}

std::string_view Tokens::pass_short_string() {
  const char quote = source_[at_++];
  const std::size_t start = at_;
  while (at_ < source_.size() && source_[at_] != quote && !at_line_break()) {
    if (source_[at_++] != '\\' || at_ == source_.size()) continue;
    if (at_line_break()) {
      pass_line_break();
    } else if (source_[at_++] == 'z') {
      while (at_ < source_.size() && (source_[at_] == ' ' || (source_[at_] >= '\t' && source_[at_] <= '\r'))) {
        if (at_line_break()) pass_line_break();
        else ++at_;
      }
    }
  }
  const std::string_view text = source_.substr(start, at_ - start);
  if (at(at_) == quote) ++at_;
  return text;
}

void Tokens::skip_blanks_and_comments() {
  while (at_ < source_.size()) {
    const char c = source_[at_];
    if (at_line_break()) {
      pass_line_break();
    } else if (c == ' ' || c == '\t' || c == '\v' || c == '\f') {
      ++at_;
    } else if (c == '-' && at(at_ + 1) == '-') {
      at_ += 2;
      const std::size_t bracket = at(at_) == '[' ? long_bracket() : 0;
      if (bracket != 0) pass_long_string(bracket);
      else skip_line();
    } else {
      return;
    }
  }
}

Token Tokens::next() {
  skip_blanks_and_comments();
  if (at_ >= source_.size()) return {Token::Kind::end, {}, line_};
  const std::size_t start = at_;
  const char c = source_[at_];
  const auto token = [&](Token::Kind kind) { return Token{kind, source_.substr(start, at_ - start), line_}; };
  if (is_letter(c)) {
    while (is_letter(at(at_)) || is_digit(at(at_))) ++at_;
    const Token word = token(Token::Kind::name);
    return {std::ranges::find(keywords, word.text) != keywords.end() ? Token::Kind::keyword : word.kind, word.text,
            line_};
  }
  if (is_digit(c) || (c == '.' && is_digit(at(at_ + 1)))) {
    while (is_letter(at(at_)) || is_digit(at(at_)) || at(at_) == '.') {
      const bool exponent = std::string_view("eEpP").find(at(at_)) != std::string_view::npos;
      ++at_;
      if (exponent && (at(at_) == '+' || at(at_) == '-')) ++at_;
    }
    return token(Token::Kind::number);
  }
  if (c == '"' || c == '\'') {
    const std::string_view text = pass_short_string();
    return {Token::Kind::string, text, line_};
  }
  if (const std::size_t bracket = c == '[' ? long_bracket() : 0; bracket != 0) {
    const std::string_view text = pass_long_string(bracket);
    return {Token::Kind::string, text, line_};
  }
  constexpr std::array<std::string_view, 7> longer = {"...", "..", "==", "~=", "<=", ">=", "::"};
  const auto* const found = std::ranges::find_if(
      longer, [&](std::string_view symbol) { return source_.substr(at_).starts_with(symbol); });
  at_ += found != longer.end() ? found->size() : 1;
  return token(Token::Kind::symbol);
}

}  // namespace luaspy
