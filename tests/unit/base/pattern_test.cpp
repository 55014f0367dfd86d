#include "base/pattern.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <string>

namespace luaspy::pattern_test {
namespace {

bool finds(std::string_view expression, std::string_view text) { return Pattern(expression).found_in(text); }

}  // namespace

TEST_CASE("a pattern is searched for in any part of a text", "[unit]") {
  CHECK(finds("get_.*\\(a\\.lua", "get_all (a.lua:3)"));
  CHECK(finds("^get|^set", "set (a.lua:3)"));
  CHECK(!finds("^all", "get_all (a.lua:3)"));
  CHECK(finds("größe.$", "größe日"));
  CHECK(!finds("GET", "get"));
  CHECK(Pattern("GET", Pattern::Case::same).found_in("get"));
}

TEST_CASE("what is no regular expression is searched for as it is", "[unit]") {
  CHECK(finds("(", "f (a.lua:5)"));
  CHECK(!finds("(", "f"));
  CHECK(finds("[a", "t[a]"));
  CHECK(finds("(a.lua:5", "f (a.lua:5)"));
  CHECK(!finds("(a.lua:5", "f (a-lua:5)"));
  CHECK(finds("(a)\\1", "(a)\\1"));                    // a backreference
  CHECK(finds("(a{999}){999}", "the (a{999}){999}"));  // more than fits into its memory
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

}  // namespace luaspy::pattern_test
