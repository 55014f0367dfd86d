#define CATCH_CONFIG_RUNNER
#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "support/skip.h"
#include "support/test_case.h"

namespace luaspy::test {
namespace {

bool any_skipped = false;
std::vector<std::string> current_tags;

struct TagsOfTest : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo& test) override { current_tags = test.tags; }
};
CATCH_REGISTER_LISTENER(TagsOfTest)

}  // namespace

bool has_tag(std::string_view tag) { return std::ranges::find(current_tags, tag) != current_tags.end(); }

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
