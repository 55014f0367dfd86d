#include "cli/suggestion.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace luaspy;

TEST_CASE("what a mistyped word was meant to be", "[unit]") {
  const std::vector<std::string> commands = {"record", "report", "top", "dump", "ps", "doctor"};
  CHECK(nearest("recrod", commands) == "record");
  CHECK(nearest("reprot", commands) == "report");
  CHECK(nearest("rec", commands) == "record");
  CHECK(nearest("tpo", commands) == "top");
  CHECK(nearest("dmup", commands) == "dump");
  CHECK(nearest("docter", commands) == "doctor");
  CHECK(nearest("frobnicate", commands).empty());
  CHECK(nearest("xx", commands).empty());
  CHECK(nearest("", commands).empty());
  CHECK(nearest(std::string(100'000, 'r'), commands).empty());
  const std::vector<std::string> options = {"--locals", "--count", "--coroutines"};
  CHECK(nearest("--lcoals", options) == "--locals");
  CHECK(nearest("--coroutine", options) == "--coroutines");
  CHECK(nearest("--nonsense", options).empty());
}
