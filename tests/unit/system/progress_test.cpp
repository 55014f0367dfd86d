#include "system/progress.h"

#include <catch2/catch.hpp>

namespace luaspy::system {

TEST_CASE("a bar of progress has its length whatever is done", "[unit]") {
  CHECK(progress_bar(0) == "[........................] ");
  CHECK(progress_bar(0.5) == "[############............] ");
  CHECK(progress_bar(1) == "[########################] ");
  CHECK(progress_bar(-1) == progress_bar(0));
  CHECK(progress_bar(7) == progress_bar(1));
}

}  // namespace luaspy::system
