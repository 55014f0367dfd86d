#pragma once
// Regular expressions, as options and keys take them. RE2 reads them: its syntax is that of
// ECMAScript and Perl without lookarounds and backreferences. A search takes time in proportion to
// the text and little memory, whatever the expression and the text are.

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace luaspy {

class Pattern {
 public:
  enum class Case : std::uint8_t { differs, same };  // same: "A" matches "a"

  // An error has one line.
  static Result<Pattern> compile(std::string_view expression, Case letters = Case::differs);
  // If `text` is no regular expression, it is searched for as it is.
  static Pattern lenient(std::string_view text, Case letters = Case::differs);

  // Whether any part of `text` matches.
  bool found_in(std::string_view text) const;

 private:
  explicit Pattern(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace luaspy
