#include "luastate/function_name.h"

#include <catch2/catch.hpp>

namespace luaspy {
namespace {

using Name = LoadedFunctions::Name;

std::string named(std::vector<Name> names, std::string_view definition, bool takes_self = false) {
  LoadedFunctions::Function function;
  function.names = std::move(names);
  return function_name(&function, nullptr, definition, takes_self);
}

}  // namespace

TEST_CASE("a function has the name where it lives, and a method a colon", "[function_name]") {
  CHECK(named({{"bank", "total", 0}}, "") == "bank.total");
  CHECK(named({{"bank", "total", 0}}, "M.total") == "bank.total");
  CHECK(named({{"bank", "total", 0}}, "sum_up") == "bank.total");
  CHECK(named({{"", "total", 0}}, "") == "total");
  CHECK(named({{"bank", "total", 0}}, "", true) == "bank:total");
  CHECK(named({{"bank", "total", 0}}, "M:total") == "bank:total");
  CHECK(named({{"bank.Account", "audit", 1}}, "", true) == "bank.Account:audit");
  CHECK(named({{"bank.Account", "__add", 1}}, "", true) == "bank.Account.__add");
  CHECK(named({{"handlers", "GET /", 1}}, "") == "handlers[\"GET /\"]");
  CHECK(function_name(nullptr, nullptr, "", true).empty());
  CHECK(function_name(nullptr, nullptr, "handlers.accounts", false) == "handlers.accounts");
}

TEST_CASE("a class has the name that the source gives it", "[function_name]") {
  CHECK(named({{"account", "audit", 0}}, "Account:audit", true) == "Account:audit");
  CHECK(named({{"bank.Account", "audit", 1}}, "Account:audit", true) == "Account:audit");
  CHECK(named({{"bank.Savings", "audit", 1}}, "Account:audit", true) == "Account:audit");
  CHECK(named({{"bank.Account", "audit", 1}}, "M.Account:audit", true) == "bank.Account:audit");
  CHECK(named({{"account", "audit", 0}}, "M:audit", true) == "account:audit");
  CHECK(named({{"account", "audit", 0}}, "_M.audit", true) == "account:audit");
  CHECK(named({{"bank.Account", "audit", 1}}, "class:audit", true) == "bank.Account:audit");
}

TEST_CASE("of several names the one that the source uses, else the first", "[function_name]") {
  const std::vector<Name> aliases = {{"bank", "sum", 0}, {"bank", "total", 0}, {"ledger", "total", 0}};
  CHECK(named(aliases, "") == "bank.sum");
  CHECK(named(aliases, "M.total") == "bank.total");
  CHECK(named(aliases, "ledger.total") == "ledger.total");
  CHECK(Name{"", "f", 0}.is_before(Name{"bank", "f", 0}));
  CHECK(Name{"socket", "bind", 0}.is_before(Name{"socket.core", "bind", 0}));
  CHECK(Name{"long.module.name", "f", 0}.is_before(Name{"t", "f", 1}));
}

TEST_CASE("closures with different names have their own, unless the source has one for all", "[function_name]") {
  LoadedFunctions::Function shared;
  shared.names = {{"", "first", 0}, {"", "second", 0}};
  shared.is_shared = true;
  const Name own{"", "second", 0};
  CHECK(function_name(&shared, &own, "", false) == "second");
  CHECK(function_name(&shared, &own, "wrapper", false) == "wrapper");
  CHECK(function_name(&shared, nullptr, "", false).empty());
}

TEST_CASE("methods of a C library's objects have a colon", "[function_name]") {
  LoadedFunctions::Function function;
  function.names = {{"file", "read", 3}};
  CHECK(c_function_name(&function) == "file:read");
  function.names = {{"string", "gsub", 0}};
  CHECK(c_function_name(&function) == "string.gsub");
  CHECK(c_function_name(nullptr).empty());
}

}  // namespace luaspy
