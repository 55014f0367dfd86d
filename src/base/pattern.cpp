#include "base/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/text.h"

namespace luaspy {
namespace {

std::shared_ptr<const re2::RE2> compiled(std::string_view text, Pattern::Case letters, bool literal) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_case_sensitive(letters == Pattern::Case::differs);
  options.set_literal(literal);
  return std::make_shared<const re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
}

}  // namespace

Result<Pattern> Pattern::compile(std::string_view expression, Case letters) {
  auto pattern = compiled(expression, letters, false);
  if (!pattern->ok())
    return Error{Cause::usage,
                 fmt::format("{} is no regular expression: {}", printable(expression), printable(pattern->error()))};
  return Pattern(std::move(pattern));
}

Pattern Pattern::lenient(std::string_view text, Case letters) {
  auto pattern = compiled(text, letters, false);
  return Pattern(pattern->ok() ? std::move(pattern) : compiled(text, letters, true));
}

bool Pattern::found_in(std::string_view text) const {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled_);
}

}  // namespace luaspy
