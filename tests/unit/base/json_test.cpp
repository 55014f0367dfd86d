#include "base/json.h"

#include <catch2/catch.hpp>
#include <limits>

#include "base/json_text.h"

namespace luaspy::json_test {
namespace {

std::string of(const Json& json) {
  std::string line = json.line();
  line.pop_back();
  return line;
}

Json length(const std::string& text) { return text.size(); }

}  // namespace

TEST_CASE("JSON: members and elements are in the order in which they were added", "[unit]") {
  Json json = {{"version", 1}, {"empty", Json::array()}, {"none", Json::object()}, {"nothing", Json()}};
  json["pairs"].add({{"name", "b"}, {"yes", true}});
  json["pairs"].add({{"name", std::string("a")}, {"yes", false}}) = {{"name", std::string_view("c")}};
  json["names"] = std::vector<std::string>{"x", "y"};
  json["lengths"] = Json::array(std::vector<std::string>{"abc"}, length);
  json["version"] = 2;
  CHECK(json.text() == R"({
  "version": 2,
  "empty": [],
  "none": {},
  "nothing": null,
  "pairs": [
    {
      "name": "b",
      "yes": true
    },
    {
      "name": "c"
    }
  ],
  "names": [
    "x",
    "y"
  ],
  "lengths": [
    3
  ]
}
)");
  CHECK(json.line() == R"({"version":2,"empty":[],"none":{},"nothing":null,)"
                       R"("pairs":[{"name":"b","yes":true},{"name":"c"}],"names":["x","y"],"lengths":[3]})"
                       "\n");
}

TEST_CASE("JSON: numbers are read again as the same ones", "[unit]") {
  CHECK(of(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(of(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(of(1.0) == "1.0");
  CHECK(of(-0.0) == "-0.0");
  CHECK(of(0.1) == "0.1");
  CHECK(of(3092.124775731) == "3092.124775731");
  CHECK(of(999999999999999.0) == "999999999999999.0");
  CHECK(of(1e15) == "1e+15");
  CHECK(of(1.5e300) == "1.5e+300");
  CHECK(of(0.0001) == "0.0001");
  CHECK(of(0.00001) == "1e-05");
  CHECK(of(std::numeric_limits<double>::infinity()) == "null");
  CHECK(of(std::numeric_limits<double>::quiet_NaN()) == "null");
}

TEST_CASE("JSON: texts are escaped, and what is not UTF-8 is replaced", "[unit]") {
  CHECK(of("\b\f\n\r\t\"\\/") == R"("\b\f\n\r\t\"\\/")");
  CHECK(of(std::string_view("\0\x1f\x7f", 3)) == "\"\\u0000\\u001f\x7f\"");
  CHECK(of("größe \U0001f600") == "\"größe \U0001f600\"");
  CHECK(of("\xff\xc3|\xe2\x82|\xed\xa0\x80|\xf0\x9f\x98") == "\"\ufffd\ufffd|\ufffd|\ufffd\ufffd\ufffd|\ufffd\"");
  CHECK(of({{"\n", 1}}) == R"({"\n":1})");
  CHECK(json_text("<ö>") == "\"<ö>\"");
  CHECK(json_in_html("</a> & ö\x7f\U0001f600\xff") == R"("\u003c/a\u003e \u0026 \u00f6\u007f\ud83d\ude00\ufffd")");
}

}  // namespace luaspy::json_test
