#include "base/json.h"

#include <catch2/catch.hpp>
#include <limits>

#include "base/json_text.h"
#include "base/parsed_json.h"

namespace luaspy::json_test {
namespace {

std::string of(const Json& json) {
  std::string line = json.line();
  line.pop_back();
  return line;
}

Json length(const std::string& text) { return text.size(); }

// All of it.
std::optional<Json> read(std::string_view text, std::size_t deepest = 8) {
  return parsed_json(text, deepest, [](std::string_view, const Json&) { return true; });
}

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

TEST_CASE("JSON: what was read is printed as the same text", "[unit]") {
  const std::string text = R"({"b":[1,-2,3.5,"x\n\"ö",true,false,null,[],{}],"a":{"":18446744073709551615}})";
  CHECK(of(*read(" " + text + "\r\n")) == text);
  CHECK(of(*read(R"("\u00f6\ud83d\ude00\/")", 0)) == "\"ö\U0001f600/\"");
  CHECK(of(*read("1e3", 0)) == "1000.0");
}

TEST_CASE("JSON: a value that was read is of one type, and empty as any other", "[unit]") {
  const Json json = *read(R"({"text":"a","no":false,"zero":0,"minus":-0,"largest":18446744073709551615,
      "half":0.5,"list":[1],"twice":1,"twice":"2","null":null})");
  CHECK(*json.at("text").as_text() == "a");
  CHECK(json.at("no").as_bool() == false);
  CHECK(json.at("zero").as_unsigned() == 0);
  CHECK_FALSE(json.at("zero").as_bool());
  CHECK_FALSE(json.at("minus").as_unsigned());
  CHECK(json.at("largest").as_unsigned() == std::numeric_limits<std::uint64_t>::max());
  CHECK_FALSE(json.at("half").as_unsigned());
  CHECK(json.at("list").is_array());
  CHECK(json.at("list").elements().size() == 1);
  CHECK(json.at("list").find("text") == nullptr);
  CHECK(*json.at("twice").as_text() == "2");
  CHECK(json.find("null") != nullptr);
  CHECK(json.find("none") == nullptr);
  for (const char* const other : {"null", "none"}) {
    CHECK_FALSE(json.at(other).is_array());
    CHECK(json.at(other).elements().empty());
    CHECK(json.at(other).find("") == nullptr);
    CHECK(json.at(other).as_text() == nullptr);
    CHECK_FALSE(json.at(other).as_bool());
    CHECK_FALSE(json.at(other).as_unsigned());
  }
}

TEST_CASE("JSON: a text that is damaged is refused, and what is nested too deep is left out", "[unit]") {
  for (const std::string text :
       {"",      " ",   "{",   "[1,]",   "{\"a\":1,}", "{a:1}",       "[1] 2",   "01",  "+1",        "NaN",
        "1e999", "'a'", "\"a", "\"\n\"", "\"\xff\"",   R"("\ud800")", "// 1\n1", "nul", "{\"a\" 1}", "]"})
    CHECK_FALSE(read(text));
  CHECK(of(*read("[[{}]]", 2)) == "[[{}]]");
  CHECK(of(*read("[[{\"a\":1}]]", 2)) == "[[{}]]");
  CHECK(of(*read("[[[1]]]", 2)) == "[[[]]]");
  CHECK(of(*read("[[[[]]]]", 2)) == "[[[]]]");
  CHECK_FALSE(read(std::string(1 << 20, '[')));
}

TEST_CASE("JSON: of a large text a part is kept", "[unit]") {
  std::string seen;
  const auto keep = [&](std::string_view member, const Json& value) {
    seen += std::string(member) + ' ' + value.line();
    return member != "b";
  };
  const auto kept = [&](std::string_view text) { return of(*parsed_json(text, 3, keep)); };
  CHECK(kept(R"({"a":[1,[2,[3,[4,{"x":5}],6]]],"b":[[7],8,{"c":9}],"d":{"e":10},"b":{"f":11}})") ==
        R"({"a":[1,[2,[]]],"b":[],"d":{"e":10},"b":{}})");
  CHECK(seen == "a 1\na [2,[]]\nb [7]\nb 8\nb {\"c\":9}\nd 10\nb 11\n");
  seen.clear();
  CHECK(kept(R"([[[1]],{"b":2}])") == R"([[[1]],{"b":2}])");
  CHECK(seen.empty());
  CHECK_FALSE(parsed_json(R"({"a":[[[[[[]])", 3, keep));
}

}  // namespace luaspy::json_test
