#include "base/pattern.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>

namespace luaspy {
namespace {

bool finds(std::string_view expression, std::string_view text) {
  return Pattern::compile(expression).value().found_in(text);
}

std::string error_of(std::string_view expression) {
  const Result<Pattern> pattern = Pattern::compile(expression);
  return pattern ? "" : pattern.error().text;
}

}  // namespace

TEST_CASE("a pattern is searched for in any part of a text", "[unit]") {
  CHECK(finds("get_.*\\(a\\.lua", "get_all (a.lua:3)"));
  CHECK(finds("^get|^set", "set (a.lua:3)"));
  CHECK(!finds("^all", "get_all (a.lua:3)"));
  CHECK(finds("größe.$", "größe日"));
  CHECK(!finds("GET", "get"));
  CHECK(Pattern::lenient("GET", Pattern::Case::same).found_in("get"));
}

TEST_CASE("what is no regular expression is told in one line, or searched for as it is", "[unit]") {
  CHECK(error_of("(") == "( is no regular expression: missing ): (");
  CHECK(error_of("[a").find('\n') == std::string::npos);
  CHECK(error_of("(\n") == "(\\x0a is no regular expression: missing ): (\\x0a");
  CHECK(!error_of("\xff").empty());
  CHECK(!error_of("(a)\\1").empty());         // a backreference
  CHECK(!error_of("(a{999}){999}").empty());  // more than fits into its memory
  CHECK(Pattern::lenient("(a.lua:5").found_in("f (a.lua:5)"));
  CHECK(!Pattern::lenient("(a.lua:5").found_in("f (a-lua:5)"));
}

// A search that goes back over what it has tried takes 2^50 steps for the first, and a stack as deep
// as the text is long for the second.
TEST_CASE("no pattern takes exponential time or a deep stack", "[unit]") {
  const auto begin = std::chrono::steady_clock::now();
  CHECK(!finds("(a+)+b", std::string(50, 'a')));
  CHECK(finds("^(x|y)*$", std::string(1'000'000, 'x')));
  CHECK(!finds("(.*)(.*)(.*)(.*)(.*)z$", std::string(20'000, 'x')));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

}  // namespace luaspy
