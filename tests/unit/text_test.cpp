#include "text.h"

#include <catch2/catch.hpp>

namespace luaspy {

TEST_CASE("what a terminal could obey or a file could break on is shown, not passed on", "[unit]") {
  CHECK(printable("größe 日本語") == "größe 日本語");
  CHECK(printable("a\nb\x1b[31m") == "a\\x0ab\\x1b[31m");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");                  // C1: CSI
  CHECK(printable("\xff\xfe ok") == "\\xff\\xfe ok");
  CHECK(printable("\xe0\x80\x80") == "\\xe0\\x80\\x80");          // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");          // a surrogate
  CHECK(printable("\xf0\x9f\x8c") == "\\xf0\\x9f\\x8c");          // cut short
  CHECK(printable("abcdef", 3) == "abc...");
  CHECK(printable("abc", 3) == "abc");
}

}  // namespace luaspy
