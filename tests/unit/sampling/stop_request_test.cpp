#include "sampling/stop_request.h"

#include <catch2/catch.hpp>

namespace luaspy::stop_request_test {

TEST_CASE("a session is not destroyed before what was found with it has been handed over", "[stop_request]") {
  StopRequest request;
  CHECK(request.may_destroy(false));
  request.ask(3);
  CHECK(request.asked_by() == 3);
  request.drop();
  CHECK_FALSE(request.may_destroy(false));  // the thread may stop soon

  SECTION("the thread stops after that") {
    CHECK_FALSE(request.begin_look());
    CHECK(request.asked_by() == 3);
    CHECK_FALSE(request.may_destroy(false));
    request.end();
    CHECK(request.may_destroy(false));
  }
  SECTION("the thread does not stop") { CHECK(request.may_destroy(true)); }
}

TEST_CASE("a look that has begun is waited for, however long it takes", "[stop_request]") {
  StopRequest request;
  request.ask(0);
  REQUIRE(request.begin_look());
  request.drop();
  CHECK_FALSE(request.may_destroy(false));
  CHECK_FALSE(request.may_destroy(true));  // luaspy itself may have been stopped for seconds
  request.end();
  CHECK(request.asked_by() == StopRequest::nobody);
  CHECK(request.may_destroy(false));
}

}  // namespace luaspy::stop_request_test
