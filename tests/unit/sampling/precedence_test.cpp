#include "sampling/precedence.h"

#include <catch2/catch.hpp>

namespace luaspy::precedence_test {

TEST_CASE("what luaspy did about real-time threads is told with a remedy, if there is one", "[unit]") {
  CHECK(precedence_text({}).empty());
  CHECK(precedence_text({Urgency::real_time(10), 11, 3'140'000}) ==
        "the target has threads of a real-time policy; luaspy stepped above them for its looks, to priority 11, 3.1 ms "
        "in "
        "total");
  CHECK(
      precedence_text({Urgency::real_time(10), 0, 0, true}) ==
      "the target has a thread of real-time priority 10, which luaspy looked at from another CPU; root may step above "
      "it, and others after `ulimit -r 11`");
  CHECK(
      precedence_text({Urgency::deadline(), 0, 0, true}) ==
      "the target has a thread of the deadline policy, which luaspy looked at from another CPU; nothing precedes that");
  CHECK(precedence_text({Urgency::real_time(99), 0, 0, false, true}).ends_with("`taskset` gives luaspy another CPU"));
  CHECK(precedence_text({Urgency::real_time(10), 0, 0, true, false, true}) ==
        "the target has a thread of real-time priority 10, which luaspy looked at from another CPU; it may use several "
        "CPUs, and would have to change its own at each look if luaspy stepped above it");
  CHECK(precedence_text({{}, 0, 0, false, false, false, true}) ==
        "real-time threads took all of a CPU, so luaspy looked at what ran there from another one");
}

}  // namespace luaspy::precedence_test
