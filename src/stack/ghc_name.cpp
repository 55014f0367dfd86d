#include "stack/ghc_name.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace luaspy {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

// What follows "z" or "Z".
constexpr std::pair<char, char> lower_escapes[] = {{'a', '&'}, {'b', '|'}, {'c', '^'},  {'d', '$'},  {'e', '='},
                                                   {'g', '>'}, {'h', '#'}, {'i', '.'},  {'l', '<'},  {'m', '-'},
                                                   {'n', '!'}, {'p', '+'}, {'q', '\''}, {'r', '\\'}, {'s', '/'},
                                                   {'t', '*'}, {'u', '_'}, {'v', '%'},  {'z', 'z'}};
constexpr std::pair<char, char> upper_escapes[] = {{'L', '('}, {'R', ')'}, {'M', '['},
                                                   {'N', ']'}, {'C', ':'}, {'Z', 'Z'}};

void put_utf8(std::string& text, unsigned c) {
  if (c < 0x80) return text += static_cast<char>(c), void();
  if (c < 0x800) text += static_cast<char>(0xc0 | c >> 6);
  else if (c < 0x10000) text += static_cast<char>(0xe0 | c >> 12), text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
  else
    text += static_cast<char>(0xf0 | c >> 18), text += static_cast<char>(0x80 | (c >> 12 & 0x3f)),
        text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
  text += static_cast<char>(0x80 | (c & 0x3f));
}

// "z3bbU" is the letter U+3bb; the number starts with a digit.
bool consume_letter(std::string_view& rest, std::string& text) {
  unsigned c = 0;
  std::size_t i = 0;
  for (; i < rest.size() && (is_digit(rest[i]) || (rest[i] >= 'a' && rest[i] <= 'f')); ++i) {
    c = 16 * c + static_cast<unsigned>(is_digit(rest[i]) ? rest[i] - '0' : rest[i] - 'a' + 10);
    if (c > 0x10ffff) return false;
  }
  if (i == 0 || i == rest.size() || rest[i] != 'U' || c < 0x20 || (c >= 0xd800 && c < 0xe000)) return false;
  put_utf8(text, c);
  rest.remove_prefix(i + 1);
  return true;
}

// "Z3T" is the tuple (,,), "Z0T" (), "Z2H" the unboxed (#,#).
bool consume_tuple(std::string_view& rest, std::string& text) {
  constexpr int most = 100;
  int size = 0;
  std::size_t i = 0;
  for (; i < rest.size() && is_digit(rest[i]) && size <= most; ++i) size = 10 * size + (rest[i] - '0');
  if (i == 0 || i == rest.size() || size > most || (rest[i] != 'T' && rest[i] != 'H')) return false;
  const bool unboxed = rest[i] == 'H';
  text += unboxed ? "(#" : "(";
  text += size > 1 ? std::string(static_cast<std::size_t>(size - 1), ',') : unboxed ? " " : "";
  text += unboxed ? "#)" : ")";
  rest.remove_prefix(i + 1);
  return true;
}

// nullopt: not z-encoded text.
std::optional<std::string> decoded(std::string_view rest, bool& has_escape) {
  std::string text;
  while (!rest.empty()) {
    const char c = rest[0];
    rest.remove_prefix(1);
    if (c != 'z' && c != 'Z') {
      text += c;
      continue;
    }
    if (rest.empty()) return {};
    has_escape = true;
    if (is_digit(rest[0])) {
      if (!(c == 'z' ? consume_letter(rest, text) : consume_tuple(rest, text))) return {};
      continue;
    }
    const auto find = [&](const auto& escapes) {
      const auto* const found = std::ranges::find(escapes, rest[0], &std::pair<char, char>::first);
      return found != std::end(escapes) ? found->second : '\0';
    };
    const char meant = c == 'z' ? find(lower_escapes) : find(upper_escapes);
    if (meant == '\0') return {};
    text += meant;
    rest.remove_prefix(1);
  }
  return text;
}

// "GHC.Base": each part starts with a capital letter.
bool is_module(std::string_view name) {
  bool begins = true;
  for (const char c : name) {
    if (begins ? !is_upper(c) : !is_upper(c) && !is_lower(c) && !is_digit(c) && c != '_' && c != '\'' && c != '.')
      return false;
    begins = c == '.';
  }
  return !begins;
}

// Removes the suffix that says which part of the function it is. Longest suffixes first.
std::string_view without_kind(std::string_view symbol) {
  static constexpr std::string_view kinds[] = {
      "_static_closure", "_static_info", "_con_entry", "_con_info", "_closure", "_entry", "_info",
      "_slow",           "_fast",        "_dflt",      "_ret",      "_alt",     "_srt"};
  for (const std::string_view kind : kinds) {
    if (symbol.ends_with(kind)) return symbol.substr(0, symbol.size() - kind.size());
  }
  return symbol;
}

}  // namespace

std::optional<std::string> ghc_name(std::string_view symbol) {
  const std::string_view whole = without_kind(symbol);
  const bool has_kind = whole.size() != symbol.size();
  std::vector<std::string> parts;
  bool has_escape = false;
  for (std::size_t at = 0; at <= whole.size();) {
    const std::size_t end = std::min(whole.find('_', at), whole.size());
    std::optional<std::string> part = decoded(whole.substr(at, end - at), has_escape);
    if (!part || part->empty()) return {};
    parts.push_back(std::move(*part));
    at = end + 1;
  }
  const bool has_package = !is_upper(whole.empty() ? 'A' : whole[0]);
  const std::size_t module = has_package ? 1 : 0;
  if (!has_escape || parts.size() < module + 2 || (!has_kind && !has_package) || !is_module(parts[module])) return {};
  std::string name = has_package ? parts[0] + ":" + parts[module] : parts[module];
  for (std::size_t i = module + 1; i < parts.size(); ++i) name += (i == module + 1 ? '.' : '_') + parts[i];
  return name;
}

}  // namespace luaspy
