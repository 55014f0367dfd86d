#include "base/paint.h"

#include <catch2/catch.hpp>

namespace luaspy::paint_test {

TEST_CASE("text has colours only where they are wanted", "[unit]") {
  CHECK(Paint()(Ink::hot, "a") == "a");
  CHECK(Paint(true)(Ink::hot, "a") == "\x1b[1;31ma\x1b[0m");
  CHECK(Paint(true)(Ink::plain, "a") == "a");
  CHECK(Paint(true)(Ink::dim, "").empty());
}

TEST_CASE("lines are broken between words, and colours take no room", "[unit]") {
  CHECK(wrapped("one two three\n", 0) == "one two three\n");
  CHECK(wrapped("one two three\n", 13) == "one two three\n");
  CHECK(wrapped("one two three\nfour", 9) == "one two\n    three\nfour");
  CHECK(wrapped("  one two  three four", 12, 2) == "  one two\n    three\n    four");
  CHECK(wrapped("incomprehensibilities are long", 10) == "incomprehensibilities\n    are\n    long");
  const Paint paint(true);
  const std::string red = paint(Ink::hot, "two");
  CHECK(wrapped("one " + red + " three", 13) == "one " + red + " three");
  CHECK(wrapped("one " + red + " three", 9) == "one " + red + "\n    three");
  CHECK(wrapped("größe größe größe", 11) == "größe größe\n    größe");
  CHECK(wrapped("\n\n", 5) == "\n\n");
}

}  // namespace luaspy::paint_test
