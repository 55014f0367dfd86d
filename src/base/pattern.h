#pragma once
// Regular expressions, as all options and keys that search take them. RE2 reads them: its syntax is that of
// ECMAScript and Perl without lookarounds and backreferences. A search takes time in proportion to
// the text and little memory, whatever the expression and the text are.

#include <cstdint>
#include <memory>
#include <string_view>

namespace re2 {
class RE2;
}

namespace luaspy {

class Pattern {
 public:
  enum class Case : std::uint8_t { differs, same };  // same: "A" matches "a"

  // If `text` is no regular expression, it is searched for as it is.
  explicit Pattern(std::string_view text, Case letters = Case::differs);

  // Whether any part of `text` matches.
  bool found_in(std::string_view text) const;

 private:
  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace luaspy
