#pragma once
// Makes strings from a target fit for people and files.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace luaspy {

// The first character of a text, which must not be empty, as UTF-8 (Unicode 15, table 3-7).
struct Utf8Character {
  std::size_t length;            // bytes; without a code: of what begins a character but is not one, at least 1
  std::optional<char32_t> code;  // nullopt: this is not UTF-8
};
Utf8Character first_character(std::string_view text);

// Whether a character has no shape of its own, or changes how those around it are written: zero width, direction,
// separators of lines, and the like (Unicode 15, tables 23-2 and 23-3). With one of them, two names look the same,
// or a line reads otherwise than it is.
bool is_invisible(char32_t code);

// Valid UTF-8 without control characters and invisible ones: these become \uNNNN, everything else \xNN. At most
// `limit` bytes of input are kept; a cut is shown by "...".
std::string printable(std::string_view text, std::size_t limit = 200);

// As a Lua string literal in double quotes: like printable(), with ", \ and newlines escaped.
// `whole`: the length of the string that begins with `text`; if that is longer, "…" and the length
// follow.
std::string quoted(std::string_view text, std::uint64_t whole);

// A word that a shell reads as `text`: in quotes if it needs them, and never like an option.
std::string shell_word(std::string_view text);

// As a part of a URL: what is not unreserved (RFC 3986) becomes %XX.
std::string url_escaped(std::string_view text);

// "lua5.4" of "/usr/bin/lua5.4".
std::string base_name(std::string_view path);

// "a, b, c".
std::string joined(std::span<const std::string> words, std::string_view between);
std::string joined(std::span<const std::uint32_t> numbers, std::string_view between);
std::string joined(std::span<const int> numbers, std::string_view between);

// Where each line of `text` begins, as Lua counts lines; what follows the last line break, even
// nothing, is one more line.
std::vector<std::size_t> line_starts(std::string_view text);

}  // namespace luaspy
