#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <iostream>

#include "support/skip.h"

namespace luaspy::test {
namespace {

bool any_skipped = false;

}  // namespace

void skip(std::string_view why) {
  any_skipped = true;
  std::cout << "SKIPPED: " << Catch::getResultCapture().getCurrentTestName() << ": " << why << std::endl;
}

}  // namespace luaspy::test

// Catch returns how many assertions have failed, or test cases it has listed. A skipped one hides no failure.
int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  if (failed != 0) return 1;
  return luaspy::test::any_skipped ? luaspy::test::skipped : 0;
}
