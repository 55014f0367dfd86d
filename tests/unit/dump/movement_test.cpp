#include "dump/movement.h"

#include <catch2/catch.hpp>

namespace luaspy::movement_test {
namespace {

Frame lua(const char* name, int defined, int line) { return {Frame::Kind::lua, name, "a.lua", defined, line}; }
const Frame main_frame = {Frame::Kind::native, "main", "lua", 0, 0};
const Frame waits = {Frame::Kind::marker, "[read]", {}, 0, 0};

ProcessLook look(double time, double cpu_s, Stack stack, Loss loss = Loss::none) {
  ProcessLook result;
  result.time = time;
  ThreadLook thread;
  thread.tid = 7, thread.name = "lua";
  thread.times.on_cpu = static_cast<std::int64_t>(cpu_s * 1e9);
  thread.stack = std::move(stack);
  thread.sample.loss = loss;
  result.threads.push_back(thread);
  return result;
}

TEST_CASE("a thread that used no CPU and is where it was hangs", "[unit]") {
  const Stack stack = {main_frame, lua("f", 1, 3), waits};
  const std::vector<Movement> result = movements({look(0, 5, stack), look(1, 5, stack), look(2, 5.001, stack)});
  REQUIRE(result.size() == 1);
  CHECK(result[0].kind == Movement::Kind::stands_still);
  CHECK(result[0].tid == 7);
  CHECK(result[0].lines == std::vector<int>{3});
  CHECK(result[0].inside.size() == 3);
}

TEST_CASE("a thread that works: the function that all looks are inside of, and its lines", "[unit]") {
  const std::vector<Movement> result = movements(
      {look(10, 0, {main_frame, lua("f", 1, 9), lua("g", 20, 21)}),
       look(11, 0.99, {main_frame, lua("f", 1, 3), lua("h", 30, 31)}),
       look(12, 1.98, {main_frame, lua("called otherwise", 1, 3), lua("g", 20, 22)})});
  REQUIRE(result.size() == 1);
  CHECK(result[0].kind == Movement::Kind::works);
  CHECK(result[0].cpu == Approx(0.99));
  REQUIRE(result[0].inside.size() == 2);
  CHECK(result[0].inside[1].line_defined == 1);
  CHECK(result[0].inside[1].line == 0);
  CHECK(result[0].lines == std::vector<int>{3, 9});
}

TEST_CASE("a thread that sleeps here and there moves", "[unit]") {
  CHECK(movements({look(0, 0, {main_frame, lua("f", 1, 3), waits}), look(1, 0, {main_frame, lua("f", 1, 4), waits})})[0]
            .kind == Movement::Kind::moves);
  const Stack stack = {main_frame, waits};
  const std::vector<Movement> some_work = movements({look(0, 0, stack), look(1, 0.2, stack)});
  CHECK(some_work[0].kind == Movement::Kind::moves);
  CHECK(some_work[0].lines.empty());
}

TEST_CASE("a thread that could run and is given no CPU works", "[unit]") {
  std::vector<ProcessLook> looks = {look(0, 0, {main_frame}), look(1, 0.1, {main_frame})};
  looks[1].threads[0].times.waited_for_cpu = 800'000'000;
  CHECK(movements(looks)[0].kind == Movement::Kind::works);
  CHECK(movements(looks)[0].waited == Approx(0.8));
}

TEST_CASE("nothing is said of a thread that was not seen in every look", "[unit]") {
  CHECK(movements({look(0, 0, {main_frame}), look(1, 0, {}, Loss::moved)}).empty());
  ProcessLook empty;
  CHECK(movements({empty, look(1, 0, {main_frame})}).empty());
}

}  // namespace
}  // namespace luaspy::movement_test
