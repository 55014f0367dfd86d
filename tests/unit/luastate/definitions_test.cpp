#include "luastate/definitions.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "luastate/known_definitions.h"
#include "luastate/tokens.h"

namespace luaspy::definitions_test {
namespace {

// "line-last_line name/parameters" of each definition; "-" for one without a name.
std::vector<std::string> found(std::string_view source) {
  std::vector<std::string> texts;
  for (const Definition& each : definitions(source))
    texts.push_back(
        fmt::format("{}-{} {}/{}", each.line, each.last_line, each.name.empty() ? "-" : each.name, each.parameters));
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a function has the name that its definition says", "[definitions]") {
  CHECK(found("function f() end") == Texts{"1-1 f/0"});
  CHECK(found("function M.f(a, b, ...)\nend") == Texts{"1-2 M.f/2"});
  CHECK(found("function a.b.c:d(x)\n\nend") == Texts{"1-3 a.b.c:d/2"});
  CHECK(found("local function f(a) end") == Texts{"1-1 f/1"});
  CHECK(found("M.f = function(a) end") == Texts{"1-1 M.f/1"});
  CHECK(found("local f = function() end") == Texts{"1-1 f/0"});
  CHECK(found("local f <const> = function() end") == Texts{"1-1 f/0"});
  CHECK(found("M.a.b = function(...) end") == Texts{"1-1 M.a.b/0"});
  CHECK(found("M['f'] = function() end M[\"a b\"] = function() end") == Texts{"1-1 M.f/0", "1-1 M[\"a b\"]/0"});
  CHECK(found("M[1] = function() end M[name] = function() end") == Texts{"1-1 M[1]/0", "1-1 M[name]/0"});
  CHECK(found("M[a + 1] = function() end") == Texts{"1-1 -/0"});
  CHECK(found("f = f or function() end") == Texts{"1-1 f/0"});
  CHECK(found("f = ok and function() end or function() end") == Texts{"1-1 f/0", "1-1 f/0"});
  CHECK(found("local a, b, c = 1, function() end, function() end") == Texts{"1-1 b/0", "1-1 c/0"});
  CHECK(found("x.a, y = function() end, function() end") == Texts{"1-1 x.a/0", "1-1 y/0"});
  CHECK(found("local x = 1 y = function() end") == Texts{"1-1 y/0"});
  CHECK(found("g() x, y = function() end, 2 z = function() end") == Texts{"1-1 x/0", "1-1 z/0"});
  CHECK(found("g 'text' x = function() end") == Texts{"1-1 x/0"});
}

TEST_CASE("a function in a table constructor has the table's name and its key", "[definitions]") {
  CHECK(found("local handlers = {\n accounts = function(request)\n end,\n}") == Texts{"2-3 handlers.accounts/1"});
  CHECK(found("return {f = function() end; [\"a b\"] = function() end, ['c'] = function() end}") ==
        Texts{"1-1 f/0", "1-1 [\"a b\"]/0", "1-1 c/0"});
  CHECK(found("M.t = {u = {f = function() end}, {g = function() end}, function() end}") ==
        Texts{"1-1 M.t.u.f/0", "1-1 g/0", "1-1 -/0"});
  CHECK(found("t = {1, 2, [3] = function() end, x, y = g(function() end), z = function() end}") ==
        Texts{"1-1 t[3]/0", "1-1 -/0", "1-1 t.z/0"});
  CHECK(found("return {[3] = function() end}") == Texts{"1-1 -/0"});
  CHECK(found("local C = setmetatable({f = function() end}, {__index = function() end})") ==
        Texts{"1-1 C.f/0", "1-1 __index/0"});
  CHECK(found("local C = wrap({f = function() end})") == Texts{"1-1 f/0"});
  CHECK(found("t = {f = a or function() end, g = function() end} u = function() end") ==
        Texts{"1-1 t.f/0", "1-1 t.g/0", "1-1 u/0"});
}

TEST_CASE("a function whose first parameter is self is a method, but not a metamethod", "[definitions]") {
  CHECK(found("Account.audit = function(self, x) end") == Texts{"1-1 Account:audit/2"});
  CHECK(found("function Account.audit(self) end") == Texts{"1-1 Account:audit/1"});
  CHECK(found("local Account = {audit = function(self) end, make = function(name) end}") ==
        Texts{"1-1 Account:audit/1", "1-1 Account.make/1"});
  CHECK(found("function Account.__add(self, other) end") == Texts{"1-1 Account.__add/2"});
  CHECK(found("function Account:__tostring() end") == Texts{"1-1 Account.__tostring/1"});
  CHECK(found("local function audit(self) end") == Texts{"1-1 audit/1"});
}

TEST_CASE("what is no definition gives no name", "[definitions]") {
  CHECK(found("run(function() end)") == Texts{"1-1 -/0"});
  CHECK(found("local x = run(function() end)") == Texts{"1-1 -/0"});
  CHECK(found("local x = (function() end)()") == Texts{"1-1 -/0"});
  CHECK(found("return function() end") == Texts{"1-1 -/0"});
  CHECK(found("local f = memoize(function() end) f = 1 + function() end") == Texts{"1-1 -/0", "1-1 -/0"});
  CHECK(found("f().x = function() end (a).y = function() end") == Texts{"1-1 -/0", "1-1 -/0"});
}

TEST_CASE("functions in functions know which one is around them", "[definitions]") {
  const std::vector<Definition> all = definitions(
      "function outer()\n local function inner() if a then while b do f() end end end\n repeat local x = function() "
      "end until true\n return function() end\nend\nfunction last() end");
  REQUIRE(all.size() == 5);
  CHECK(all[0].name == "outer");
  CHECK(all[0].last_line == 5);
  CHECK(all[1].name == "inner");
  CHECK(all[2].name == "x");
  CHECK(all[3].name.empty());
  CHECK(all[4].name == "last");
  CHECK(all[0].parent == -1);
  for (int i = 1; i <= 3; ++i) CHECK(all[static_cast<std::size_t>(i)].parent == 0);
  CHECK(all[4].parent == -1);
}

TEST_CASE("comments and strings hold no functions, and lines are counted as Lua does", "[definitions]") {
  CHECK(found("-- function a() end\nfunction b() end") == Texts{"2-2 b/0"});
  CHECK(found("--[[ function a()\n end ]] function b() end") == Texts{"2-2 b/0"});
  CHECK(found("--[==[ ]] function a() end\n]==] function b() end") == Texts{"2-2 b/0"});
  CHECK(found("--[= function a() end\nfunction b() end") == Texts{"2-2 b/0"});
  CHECK(found("local s = 'function a() end' function b() end") == Texts{"1-1 b/0"});
  CHECK(found("local s = 'it\\'s' .. \"\\\"function a()\" function b() end") == Texts{"1-1 b/0"});
  CHECK(found("local s = [[\nfunction a() end\n]] function b() end") == Texts{"3-3 b/0"});
  CHECK(found("local s = [=[ ]] \n]=] function b() end") == Texts{"2-2 b/0"});
  CHECK(found("local s = 'a\\\nb\\z \n  c' function b() end") == Texts{"3-3 b/0"});
  CHECK(found("t[ [[f]] ] = function() end") == Texts{"1-1 t.f/0"});
  CHECK(found("#!/usr/bin/lua\nfunction b() end") == Texts{"2-2 b/0"});
  CHECK(found("\xef\xbb\xbf# a\r\nfunction b()\r\nend\n\rfunction c()\r\r end") == Texts{"2-3 b/0", "4-6 c/0"});
  CHECK(found("function b() local x = 0x1p+3 .. 1e-5 end f = function() end") == Texts{"1-1 b/0", "1-1 f/0"});
}

TEST_CASE("the line is the compiler's", "[definitions]") {
  CHECK(found("function\nf\n(\na)\nend") == Texts{"1-5 f/1"});
  CHECK(found("local function\nf\n(\na)\nend") == Texts{"3-5 f/1"});
  CHECK(found("f = function\n(a)\nend") == Texts{"2-3 f/1"});
}

TEST_CASE("a text that is no Lua ends it without harm", "[definitions]") {
  CHECK(found("function a() end function b( end") == Texts{"1-1 a/0"});
  CHECK(found("function a() end end function b() end") == Texts{"1-1 a/0"});
  CHECK(found("function a() end x = } function b() end") == Texts{"1-1 a/0"});
  CHECK(found("function a()") == Texts{"1-0 a/0"});
  CHECK(found("local s = [==[ function a() end") == Texts{});
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{(";
  CHECK(found("function a() end x = " + deep) == Texts{"1-1 a/0"});
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += "function f() ";
  CHECK(definitions(nested).size() < 300);
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  CHECK(found(bytes).empty());
  std::string path = "a";
  for (int i = 0; i < 100'000; ++i) path += ".b";
  CHECK(definitions(path + " = function() end").size() == 1);
  CHECK(definitions("function " + path + "() end")[0].name.empty());
}

TEST_CASE("a name that is too long to show is no name, and is not copied into others", "[definitions]") {
  const std::string longest(longest_definition, 'a'), longer = longest + "a", huge(100'000, 'a');
  CHECK(found("function " + longest + "() end") == Texts{"1-1 " + longest + "/0"});
  CHECK(found("function " + longer + "() end") == Texts{"1-1 -/0"});
  CHECK(found("x." + longest + " = function() end") == Texts{"1-1 -/0"});
  CHECK(found("function x." + longest + ".b() end") == Texts{"1-1 -/0"});
  CHECK(found("function x" + longest + ".b:c() end") == Texts{"1-1 -/1"});
  CHECK(found("a, " + longer + ".b = function() end, function() end") == Texts{"1-1 a/0", "1-1 -/0"});
  CHECK(found("x = {" + longest + " = function() end}") == Texts{"1-1 -/0"});
  CHECK(found("x = {y = {b = function() end}, " + longer + " = function() end}") == Texts{"1-1 x.y.b/0", "1-1 -/0"});
  CHECK(found("x['b'][1]." + longest + ".c = {d = function() end}") == Texts{"1-1 d/0"});
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "f = function() end,";
  for (const std::string& text : {"x." + huge + " = {" + many + "}", "x = {" + huge + " = {" + many + "}}",
                                  "function x." + huge + "() end x = {" + many + "}", huge + " = {" + many + "}"}) {
    const std::vector<Definition> all = definitions(text);
    CHECK(all.size() >= 1000);
    for (const Definition& each : all) CHECK(each.name.size() <= longest_definition);
  }
}

TEST_CASE("a path is the table and the key", "[definitions]") {
  CHECK(path_parts("a.b:c").table == "a.b");
  CHECK(path_parts("a.b:c").key == "c");
  CHECK(path_parts("c").table.empty());
  CHECK(path_parts("c").key == "c");
  CHECK(path_parts("a[\"b.c\"]").table == "a");
  CHECK(name_in_table("a", "b", false) == "a.b");
  CHECK(name_in_table("a", "b", true) == "a:b");
  CHECK(name_in_table("a", "__add", true) == "a.__add");
  CHECK(name_in_table("a", "GET /", false) == "a[\"GET /\"]");
  CHECK(name_in_table("", "b", true) == "b");
  CHECK(name_in_table("a", "goto", false) == "a[\"goto\"]");
}

TEST_CASE("what can be a name in every Lua", "[definitions]") {
  for (const char* const name : {"a", "_", "_G", "a1", "global", "End", "gotos"}) CHECK(is_name(name));
  for (const char* const other : {"", "1", "1a", "a b", "a.b", "end", "goto", "local", "nil",
                                  "\x9b"
                                  "a",
                                  "\xc3\xa4"})
    CHECK_FALSE(is_name(other));
}

TEST_CASE("a function is found among the definitions of its line by its lines, parameters and order", "[definitions]") {
  const std::vector<Definition> all = definitions(
      "t = {function() end, f = function() end, g = function(a) end,\nh = function()\nend}\n"
      "local function outer() local inner = function() end end");
  const auto name_of = [&](int line, int last_line, int parameters, const Siblings* siblings) {
    Prototype prototype;
    prototype.line_defined = line, prototype.last_line_defined = last_line, prototype.parameters = parameters;
    const int found = find_definition(all, prototype, siblings);
    return found < 0 ? std::string("none") : all[static_cast<std::size_t>(found)].name;
  };
  CHECK(name_of(2, 3, 0, nullptr) == "t.h");
  CHECK(name_of(1, 1, 1, nullptr) == "t.g");
  CHECK(name_of(1, 1, 0, nullptr) == "none");
  const Siblings first{-1, 0, 3}, second{-1, 1, 3}, third{-1, 2, 3}, of_four{-1, 1, 4},
      unknown{Siblings::unknown, 1, 3};
  CHECK(name_of(1, 1, 0, &first).empty());
  CHECK(name_of(1, 1, 0, &second) == "t.f");
  CHECK(name_of(1, 1, 0, &third) == "none");  // it has a parameter: the file is another one
  CHECK(name_of(1, 1, 0, &of_four) == "none");
  CHECK(name_of(1, 1, 0, &unknown) == "none");
  CHECK(name_of(2, 4, 0, nullptr) == "none");
  CHECK(name_of(2, 3, 1, nullptr) == "none");
  const Siblings in_main{-1, 0, 1}, in_outer{4, 0, 1};
  CHECK(name_of(4, 4, 0, nullptr) == "none");
  CHECK(name_of(4, 4, 0, &in_main) == "outer");
  CHECK(name_of(4, 4, 0, &in_outer) == "inner");
}

}  // namespace luaspy::definitions_test
