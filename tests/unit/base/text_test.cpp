#include "base/text.h"

#include <catch2/catch.hpp>

namespace luaspy::text_test {

TEST_CASE("what a terminal could obey or a file could break on is shown, not passed on", "[unit]") {
  CHECK(printable("größe 日本語") == "größe 日本語");
  CHECK(printable("a\nb\x1b[31m") == "a\\x0ab\\x1b[31m");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");  // C1: CSI
  CHECK(printable("\xff\xfe ok") == "\\xff\\xfe ok");
  CHECK(printable("\xe0\x80\x80") == "\\xe0\\x80\\x80");  // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("\xf0\x9f\x8c") == "\\xf0\\x9f\\x8c");  // cut short
  CHECK(printable("abcdef", 3) == "abc...");
  CHECK(printable("abc", 3) == "abc");
  CHECK(printable("ab\u00f6", 3) == "ab...");  // no byte more, and no part of a character
  CHECK(printable("\xff\ufeff", 3) == "\\xff...");
}

TEST_CASE("a character that changes how others are written is shown, not passed on", "[unit]") {
  CHECK(printable("a\u202e"
                  "b\u202c"
                  "c") == "a\\u202eb\\u202cc");  // direction: overridden, and back
  CHECK(printable("\u2066\u2069\u200e\u200f\u061c") == "\\u2066\\u2069\\u200e\\u200f\\u061c");
  CHECK(printable("\u2028\u2029\ufeff\u200b\u2060\u00ad") == "\\u2028\\u2029\\ufeff\\u200b\\u2060\\u00ad");
  CHECK(printable("\U000e0041") == "\\ue0041");  // a tag, which repeats ASCII without showing it
  CHECK(printable(printable("a\u202e")) == "a\\u202e");
  CHECK(quoted("\u202e", 3) == "\"\\u202e\"");
  CHECK(printable("e\u0301 \u05d0 \u0627") == "e\u0301 \u05d0 \u0627");  // an accent, and words from right to left
}

TEST_CASE("strings are quoted as Lua would, and never cut within a character", "[unit]") {
  CHECK(quoted("plain", 5) == "\"plain\"");
  CHECK(quoted("", 0) == "\"\"");
  CHECK(quoted("a\"b\\c\n\r\t", 8) == R"("a\"b\\c\n\r\t")");
  CHECK(quoted(std::string_view("\0\x1b[31m\x7f", 7), 7) == R"("\x00\x1b[31m\x7f")");
  CHECK(quoted("\xc2\x9b", 2) == R"("\xc2\x9b")");
  CHECK(quoted("abc", 1000) == "\"abc\"…(1000 bytes)");
  CHECK(quoted("gr\xc3\xb6", 10) == "\"grö\"…(10 bytes)");
  CHECK(quoted("gr\xc3", 10) == "\"gr\"…(10 bytes)");  // the second byte is after the cut
  CHECK(quoted("\xe6\x97", 10) == "\"\"…(10 bytes)");
  CHECK(quoted("gr\xc3", 3) == "\"gr\\xc3\"");  // or there is no second byte
  CHECK(quoted("\x80\x80\x80", 9) == "\"\\x80\\x80\\x80\"…(9 bytes)");
}

TEST_CASE("words and numbers are joined, with nothing before the first and after the last", "[unit]") {
  CHECK(joined(std::vector<std::string>{}, ", ").empty());
  CHECK(joined(std::vector<std::string>{"one"}, ", ") == "one");
  CHECK(joined(std::vector<std::string>{"", "two", ""}, ", ") == ", two, ");
  CHECK(joined(std::vector<int>{-1, 0, 12}, ",") == "-1,0,12");
  CHECK(joined(std::vector<std::uint32_t>{4294967295, 7}, ", ") == "4294967295, 7");
}

}  // namespace luaspy::text_test
