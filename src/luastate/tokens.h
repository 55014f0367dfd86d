#pragma once
// The tokens of a Lua source text (llex.c), as far as finding functions needs them.

#include <cstdint>
#include <string_view>

namespace luaspy {

struct Token {
  enum class Kind : std::uint8_t { end, name, keyword, string, number, symbol };
  Kind kind = Kind::end;
  std::string_view text;  // a short string: without its quotes, escapes as they are written
  int line = 1;           // where it ends
  bool is(std::string_view what) const { return text == what && (kind == Kind::symbol || kind == Kind::keyword); }
};

// Reads tokens one after the other. Symbols are single characters, except `==`, `~=`, `<=`, `>=`,
// `::`, `..` and `...`. A text that no Lua accepts gives some tokens, too.
class Tokens {
 public:
  // Skips a byte order mark, and a first line that begins with # (lauxlib.c, skipcomment).
  explicit Tokens(std::string_view source);
  Token next();

 private:
  void skip_blanks_and_comments();
  void skip_line() {
    at_ = source_.find_first_of("\r\n", at_) != source_.npos ? source_.find_first_of("\r\n", at_) : source_.size();
  }
  bool at_line_break() const { return at_ < source_.size() && (source_[at_] == '\n' || source_[at_] == '\r'); }
  void pass_line_break();
  // At a bracket: the length of "[", "[==[" …; 0 if it begins no long string.
  std::size_t long_bracket() const;
  std::string_view pass_long_string(std::size_t bracket);
  std::string_view pass_short_string();
  char at(std::size_t i) const { return i < source_.size() ? source_[i] : '\0'; }

  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
};

// Can `text` be a name in every Lua? It is made of letters, digits and underscores of ASCII (LuaJIT
// takes bytes above 127 as well), and no keyword of 5.1 to 5.5. (`global` is a name in 5.5, too, as
// it is built by default.)
bool is_name(std::string_view text);

}  // namespace luaspy
