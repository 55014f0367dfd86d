#include "agent/window.h"

#include <catch2/catch.hpp>

namespace luaspy::window_test {
namespace {

ThreadInfo thread_of(int pid, int tid, std::uint64_t program, const std::string& command) {
  return {tid, "worker", pid, command, program, 0};
}

Sample sample_of(EventTables& tables, const std::string& function) {
  Sample sample;
  sample.stack = tables.stacks.intern(Stack{{Frame::Kind::lua, function, "a.lua", 1, 1}});
  return sample;
}

}  // namespace

TEST_CASE("a window has a profile for each program of each process", "[unit]") {
  EventTables tables;
  const ThreadId web = tables.threads.intern(thread_of(10, 10, 1, "web"));
  const ThreadId helper = tables.threads.intern(thread_of(10, 11, 1, "web"));
  const ThreadId other = tables.threads.intern(thread_of(20, 20, 2, "cache"));
  const ThreadId executed = tables.threads.intern(thread_of(20, 20, 3, "worker"));
  Window window(tables);
  const Tick tick = {0, 10};
  window.add(web, tick, sample_of(tables, "a"));
  window.add(helper, tick, sample_of(tables, "a"));
  window.add(other, tick, sample_of(tables, "b"));
  window.add(executed, tick, sample_of(tables, "c"));
  Sample lost;
  lost.loss = Loss::not_stopped;
  window.add(other, tick, lost);
  window.add_loss(Loss::late, 2);
  CHECK(window.samples() == 4);
  CHECK(window.lost() == 3);
  const std::vector<Window::Of> all = window.take_profiles();
  REQUIRE(all.size() == 3);
  CHECK((all[0].pid == 10 && all[0].command == "web" && all[0].profile->samples() == 2));
  CHECK((all[1].pid == 20 && all[1].command == "cache" && all[1].profile->samples() == 1));
  CHECK((all[2].pid == 20 && all[2].command == "worker" && all[2].profile->samples() == 1));
  CHECK(window.samples() == 0);
  CHECK(window.take_profiles().empty());
}

TEST_CASE("what a window has stays right when threads and stacks get other numbers", "[unit]") {
  EventTables tables;
  const ThreadId web = tables.threads.intern(thread_of(10, 10, 1, "web"));
  Window window(tables);
  window.add(web, {0, 10}, sample_of(tables, "a"));
  tables = {};
  window.tables_renewed();
  const ThreadId cache = tables.threads.intern(thread_of(20, 20, 2, "cache"));
  window.add(cache, {10, 10}, sample_of(tables, "b"));
  const std::vector<Window::Of> all = window.take_profiles();
  REQUIRE(all.size() == 2);
  CHECK((all[0].command == "web" && all[0].profile->frames()[FrameId{0}].name == "a"));
  CHECK((all[1].command == "cache" && all[1].profile->samples() == 1));
}

}  // namespace luaspy::window_test
