#include "luastate/function_name.h"

#include <catch2/catch.hpp>

#include "luastate/names.h"

namespace luaspy::function_name_test {
namespace {

using Name = LoadedFunctions::Name;
using enum LoadedFunctions::Level;

std::string named(std::vector<Name> names, std::string_view definition, bool takes_self = false) {
  LoadedFunctions::Function function;
  function.names = std::move(names);
  return function_name(&function, nullptr, definition, takes_self).text;
}

}  // namespace

TEST_CASE("a function has the name where it lives, and a method a colon", "[function_name]") {
  CHECK(named({{"bank", "total", module}}, "") == "bank.total");
  CHECK(named({{"bank", "total", module}}, "M.total") == "bank.total");
  CHECK(named({{"bank", "total", module}}, "sum_up") == "bank.total");
  CHECK(named({{"", "total", module}}, "") == "total");
  CHECK(named({{"bank", "total", module}}, "", true) == "bank:total");
  CHECK(named({{"bank", "total", module}}, "M:total") == "bank:total");
  CHECK(named({{"bank.Account", "audit", table}}, "", true) == "bank.Account:audit");
  CHECK(named({{"bank.Account", "__add", table}}, "", true) == "bank.Account.__add");
  CHECK(named({{"handlers", "GET /", table}}, "") == "handlers[\"GET /\"]");
  CHECK(function_name(nullptr, nullptr, "", true).text.empty());
  CHECK(function_name(nullptr, nullptr, "handlers.accounts", false).text == "handlers.accounts");
}

TEST_CASE("a class has the name that the source gives it", "[function_name]") {
  CHECK(named({{"account", "audit", module}}, "Account:audit", true) == "Account:audit");
  CHECK(named({{"bank.Account", "audit", table}}, "Account:audit", true) == "Account:audit");
  CHECK(named({{"bank.Savings", "audit", table}}, "Account:audit", true) == "Account:audit");
  CHECK(named({{"bank.Account", "audit", table}}, "M.Account:audit", true) == "bank.Account:audit");
  CHECK(named({{"account", "audit", module}}, "M:audit", true) == "account:audit");
  CHECK(named({{"account", "audit", module}}, "_M.audit", true) == "account:audit");
  CHECK(named({{"bank.Account", "audit", table}}, "class:audit", true) == "bank.Account:audit");
}

TEST_CASE("of several names the one that the source uses, else the first", "[function_name]") {
  const std::vector<Name> aliases = {{"bank", "sum", module}, {"bank", "total", module}, {"ledger", "total", module}};
  CHECK(named(aliases, "") == "bank.sum");
  CHECK(named(aliases, "M.total") == "bank.total");
  CHECK(named(aliases, "ledger.total") == "ledger.total");
  CHECK(Name{"", "f", module}.is_before(Name{"bank", "f", module}));
  CHECK(Name{"socket", "bind", module}.is_before(Name{"socket.core", "bind", module}));
  CHECK(Name{"long.module.name", "f", module}.is_before(Name{"t", "f", table}));
}

TEST_CASE("closures with different names have their own, unless the source has one for all", "[function_name]") {
  LoadedFunctions::Function shared;
  shared.names = {{"", "first", module}, {"", "second", module}};
  shared.is_shared = true;
  const Name own{"", "second", module};
  CHECK(function_name(&shared, &own, "", false).text == "second");
  CHECK(function_name(&shared, &own, "", false).is_own);
  CHECK(function_name(&shared, &own, "wrapper", false).text == "wrapper");
  CHECK(function_name(&shared, &own, "wrapper", false).is_own);
  CHECK(function_name(&shared, nullptr, "", false).text.empty());
  CHECK_FALSE(function_name(&shared, nullptr, "", false).is_own);
  CHECK_FALSE(function_name(nullptr, nullptr, "wrapper", false).is_own);
  shared.is_shared = false;
  CHECK(function_name(&shared, nullptr, "wrapper", false).is_own);
  CHECK(function_name(&shared, nullptr, "Class:first", false).text == "Class:first");
  CHECK(function_name(&shared, nullptr, "Class:first", false).is_own);
}

TEST_CASE("methods of a C library's objects have a colon", "[function_name]") {
  LoadedFunctions::Function function;
  function.names = {{"file", "read", object}};
  CHECK(c_function_name(&function) == "file:read");
  function.names = {{"string", "gsub", module}};
  CHECK(c_function_name(&function) == "string.gsub");
  CHECK(c_function_name(nullptr).empty());
}

TEST_CASE("a chunk is called as Lua calls it", "[unit]") {
  CHECK(chunk_name("@a/b.lua") == "a/b.lua");
  CHECK(chunk_name("=stdin") == "stdin");
  CHECK(chunk_name("=?") == "?");  // stripped
  CHECK(chunk_name("return 1\nreturn 2") == "[string \"return 1...\"]");
  CHECK(chunk_name("") == "[string \"\"]");
}

}  // namespace luaspy::function_name_test
