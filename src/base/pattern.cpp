#include "base/pattern.h"

#include <re2/re2.h>

namespace luaspy {
namespace {

std::shared_ptr<const re2::RE2> compiled(std::string_view text, Pattern::Case letters, bool literal) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_case_sensitive(letters == Pattern::Case::differs);
  options.set_literal(literal);
  return std::make_shared<const re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
}

}  // namespace

Pattern::Pattern(std::string_view text, Case letters) : compiled_(compiled(text, letters, false)) {
  if (!compiled_->ok()) compiled_ = compiled(text, letters, true);
}

bool Pattern::found_in(std::string_view text) const {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *compiled_);
}

}  // namespace luaspy
