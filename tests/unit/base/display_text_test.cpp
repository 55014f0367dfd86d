#include "base/display_text.h"

#include <catch2/catch.hpp>

namespace luaspy::display_text_test {

TEST_CASE("names are cut so that what tells most stays", "[unit]") {
  const Label label = {"discount", " (very/long/path/of/demo/orders.lua:11)"};
  CHECK(fit(label, 80, Charset::utf8).place == label.place);
  CHECK(fit(label, 34, Charset::utf8).name + fit(label, 34, Charset::utf8).place ==
        "discount (…/of/demo/orders.lua:11)");
  CHECK(columns(fit(label, 30, Charset::ascii).name + fit(label, 30, Charset::ascii).place) == 30);
  CHECK(fit(std::string_view("日本語"), 5, Cut::right, Charset::utf8) == "日本…");
  CHECK(fit(std::string_view("日本語"), 4, Cut::left, Charset::utf8) == "…語");
  CHECK(fit(std::string_view("abcdefgh"), 5, Cut::middle, Charset::utf8) == "ab…gh");
  CHECK(fit(std::string_view("abcdefgh"), 5, Cut::middle, Charset::ascii) == "ab..h");
  CHECK(columns("e\xcc\x81") == 1);
  CHECK(displayable("caf\xc3\xa9 \xe2\x80\xae", Charset::utf8) == "caf\xc3\xa9 \\u202e");
  CHECK(displayable("caf\xc3\xa9", Charset::ascii) == "caf?");
}

TEST_CASE("a terminal gets no invisible characters, but colours and lines", "[unit]") {
  const std::string plain = "\x1b[1mcaf\xc3\xa9\x1b[0m\n日本語\n";
  CHECK(without_invisible(plain) == plain);
  CHECK(without_invisible("a\xe2\x80\xae"
                          "b\xe2\x80\x8b"
                          "c") == "a\\u202eb\\u200bc");
}

}  // namespace luaspy::display_text_test
