// The tree of calls of a .heapsnapshot: each stack once, with what it has allocated itself.

#include "alloc/allocation_trace.h"
#include "support/framed.h"

#include <catch2/catch.hpp>

namespace luaspy::allocation_trace_test {
namespace {

Frame lua_function(const char* name, int line_defined, int line = 0) {
  return {Frame::Kind::lua, name, "app.lua", line_defined, line};
}

struct Recorded {
  Profile bytes{false}, objects{false};

  Profile::ThreadSituation add(const Stack& stack, std::int64_t of_bytes, std::int64_t of_objects) {
    const ThreadInfo thread = {1, "lua", 1, "lua"};
    FramedSample sample;
    sample.stack = stack;
    add_framed(bytes, thread, {0, of_bytes}, sample);
    add_framed(objects, thread, {0, of_objects}, sample);
    return bytes.last();
  }

  HeapsnapshotAllocations trace(bool lines, const std::vector<LiveRecording::InUse>& in_use) {
    bytes.resolve_names();
    objects.resolve_names();
    return allocation_trace(bytes, objects, lines, in_use);
  }
};

LiveRecording::InUse in_use(const Profile::ThreadSituation& of, Address object) {
  LiveRecording::InUse use;
  use.of = of;
  use.object = object;
  return use;
}

// "main (app.lua) 0/0 { work (app.lua:3) 2/40 }"
std::string text_of(const HeapsnapshotAllocations& allocations, std::uint32_t call = 0) {
  const HeapsnapshotAllocations::Call& its = allocations.calls[call];
  std::string text = allocations.functions[its.function].name + ' ' + std::to_string(its.objects) + '/' +
                     std::to_string(its.bytes);
  for (const std::uint32_t callee : its.callees) text += " { " + text_of(allocations, callee) + " }";
  return text;
}

}  // namespace

TEST_CASE("allocation trace: stacks make a tree, objects point into it", "[unit]") {
  const Frame main = {Frame::Kind::lua, "main chunk", "app.lua", 0, 0}, work = lua_function("work", 3),
              make = lua_function("make", 9);
  Recorded recorded;
  const Profile::ThreadSituation in_make = recorded.add({main, work, make}, 560, 10),
                                 in_work = recorded.add({main, work}, 40, 2);
  recorded.add({main, make}, 56, 1);
  recorded.add({main, work, make}, 112, 2);
  const HeapsnapshotAllocations trace = recorded.trace(
      false, {in_use(in_make, 0x1000), in_use(in_work, 0), in_use(in_work, 0x2000)});

  CHECK(text_of(trace) ==
        "(root) 0/0 { main chunk (app.lua) 0/0 { work (app.lua:3) 2/40 { make (app.lua:9) 12/672 } } "
        "{ make (app.lua:9) 1/56 } }");
  REQUIRE(trace.functions.size() == 4);
  CHECK(trace.functions[0].file.empty());
  const HeapsnapshotAllocations::Call& made_in = trace.calls[trace.made_in.at(0x1000)];
  CHECK(trace.functions[made_in.function].file == "app.lua");
  CHECK(trace.functions[made_in.function].line == 9);
  CHECK(made_in.bytes == 672);  // below work
  CHECK(trace.calls[trace.made_in.at(0x2000)].bytes == 40);
  CHECK(trace.made_in.size() == 2);  // 0: a part of an object
}

TEST_CASE("allocation trace: an address that was used again has the stack of its last object", "[unit]") {
  Recorded recorded;
  const Profile::ThreadSituation first = recorded.add({lua_function("first", 1)}, 8, 1),
                                 second = recorded.add({lua_function("second", 2)}, 8, 1);
  const HeapsnapshotAllocations trace = recorded.trace(false, {in_use(first, 0x1000), in_use(second, 0x1000)});
  CHECK(trace.functions[trace.calls[trace.made_in.at(0x1000)].function].name == "second (app.lua:2)");
}

TEST_CASE("allocation trace: with lines, each line is a function; without a frame, it is the root", "[unit]") {
  Recorded recorded;
  recorded.add({lua_function("work", 3, 4)}, 8, 1);
  recorded.add({lua_function("work", 3, 5)}, 16, 1);
  const Profile::ThreadSituation nothing = recorded.add({}, 24, 1);
  const HeapsnapshotAllocations trace = recorded.trace(true, {in_use(nothing, 0x1000)});
  REQUIRE(trace.functions.size() == 3);
  CHECK(trace.functions[1].line == 4);
  CHECK(trace.functions[2].line == 5);
  CHECK(text_of(trace) == "(root) 1/24 { work (app.lua:4) 1/8 } { work (app.lua:5) 1/16 }");
  CHECK(trace.number_of_call(0x1000) == 1);
  CHECK(trace.number_of_call(0x2000) == 0);
}

TEST_CASE("allocation trace: of a stack that is too deep for DevTools, the innermost calls", "[unit]") {
  Recorded recorded;
  Stack stack(3000, lua_function("deeper", 2));
  stack.front() = lua_function("outermost", 1);
  stack.back() = lua_function("innermost", 3);
  recorded.add(stack, 8, 1);
  const HeapsnapshotAllocations trace = recorded.trace(false, {});
  REQUIRE(trace.calls.size() == 1 + 2000);
  CHECK(trace.functions[trace.calls[1].function].name == "deeper (app.lua:2)");
  CHECK(trace.functions[trace.calls.back().function].name == "innermost (app.lua:3)");
  CHECK(trace.calls.back().bytes == 8);
}

}  // namespace luaspy::allocation_trace_test
