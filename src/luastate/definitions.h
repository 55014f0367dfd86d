#pragma once
// The functions of a Lua source text, with the names that the text itself gives them. A pure
// function of the text, which may be anything: work and memory are linear in its size, and nesting
// is bounded.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace luaspy {

inline constexpr std::size_t longest_definition = 120;  // bytes of a name

struct Definition {
  // As the compiler counts them (lparser.c, body; lj_parse.c, parse_body): `line` is that of
  // `function` in a statement `function f()`, and else that of the parenthesis after it.
  int line = 0, last_line = 0;
  int parameters = 0;  // with the self of a method, without varargs
  int parent = -1;     // the definition around it; -1: the main chunk
  // "f", "M.f", "Account:audit", "handlers[\"GET /\"].run"; empty: the text gives it no name, or one
  // of more than longest_definition bytes.
  std::string name;
};

// In the order of the word `function` in the text. What follows a text that is no Lua, or is nested
// deeper than a compiler allows, is left out.
//
//     function M.f()                  M.f
//     function Account:audit()        Account:audit
//     local function f()              f
//     M.f = cached or function()      M.f
//     local a, b = 1, function()      b
//     local t = {f = function()       t.f       also ["f"] = function, and tables in tables
//     T = setmetatable({f = …         T.f
//     return {f = function()          f
//     run(function()                  no name
//
// A function in a table whose first parameter is `self` is written with a colon, however it was
// defined. Metamethods (`Account.__add`) have a dot.
std::vector<Definition> definitions(std::string_view source);

// "table.key", "table:key", "table[\"a key\"]"; "key" for the table "".
std::string name_in_table(std::string_view table, std::string_view key, bool takes_self);

// A path, cut before its last key: "a.b" and "c" of "a.b:c"; the first is empty for "c".
struct PathParts {
  std::string_view table, key;
};
PathParts path_parts(std::string_view path);

}  // namespace luaspy
