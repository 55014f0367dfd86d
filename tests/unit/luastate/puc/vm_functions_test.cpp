#include "luastate/puc/vm_functions.h"

#include <catch2/catch.hpp>

#include "luastate/puc/layouts.h"

namespace luaspy {
namespace {

// A part of 5.4. Functions are numbered: names are the API's.
CallGraph small_core() {
  CallGraph core;
  core.known = {{"lua_next", 1},   {"lua_dump", 2},   {"lua_pushcclosure", 3}, {"lua_newuserdatauv", 4},
                {"lua_rawget", 5}, {"luaC_step", 10}, {"luaV_execute", 11},    {"lua_len", 6}};
  core.calls = {{1, {101}},   {2, {102}}, {3, {103, 10}}, {4, {10, 104}}, {5, {105}}, {6, {105, 106}},
                {101, {107}}, {102, {}},  {103, {108}},   {104, {108}},   {105, {}},  {106, {}},
                {107, {}},    {108, {}},  {11, {105}},    {10, {}}};
  return core;
}

}  // namespace

TEST_CASE("functions are recognised by who calls them", "[unit]") {
  const auto names = recognise_functions(small_core(), Bytecode::lua54);
  CHECK(names.at(101) == "luaH_next");
  CHECK(names.at(102) == "luaU_dump");
  CHECK(names.at(103) == "luaF_newCclosure");
  CHECK(names.at(104) == "luaS_newudata");
  CHECK(names.at(105) == "luaH_get");
  CHECK(names.at(106) == "luaV_objlen");  // the other one of lua_len has a name by then
  CHECK(!names.contains(107));
}

TEST_CASE("what may be one of two functions is neither", "[unit]") {
  CallGraph core = small_core();
  core.calls[5].push_back(107);
  const auto names = recognise_functions(core, Bytecode::lua54);
  CHECK(!names.contains(105));
  CHECK(!names.contains(107));
  CHECK(!names.contains(106));
}

// Else a new series would silently lose these names: docs/adding-a-lua-version.md.
TEST_CASE("the rules were compared with the newest series", "[unit]") {
  CHECK(newest_with_vm_functions == layouts().back().bytecode);
}

TEST_CASE("where functions are inlined over files, none is recognised", "[unit]") {
  CallGraph core = small_core();
  SECTION("luaU_dump is in lua_dump: what it calls calls itself") { core.calls[102].push_back(102); }
  SECTION("luaH_next is in lua_next: others call what that calls") { core.calls[11].push_back(101); }
  SECTION("luaS_newudata is in lua_newuserdatauv: nothing is left") { core.calls[4] = {10}; }
  CHECK(recognise_functions(core, Bytecode::lua54).empty());
}

TEST_CASE("nonsense gives nothing", "[unit]") {
  CHECK(recognise_functions({}, Bytecode::lua51).empty());
  CallGraph core;
  core.known = {{"lua_next", 1}, {"lua_dump", 1}, {"lua_rawget", 7}};
  core.calls = {{1, {1, 2}}, {2, {1, 2, 9}}};
  CHECK(recognise_functions(core, Bytecode::lua55).empty());
}

}  // namespace luaspy
