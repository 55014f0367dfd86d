// The tree of allocations in a .heapsnapshot, byte for byte.

#include "heapdump/heapsnapshot_allocations.h"

#include <catch2/catch.hpp>
#include <sstream>

namespace luaspy::heapsnapshot_allocations_test {
namespace {

std::string tree_text(const HeapsnapshotAllocations& allocations) {
  std::ostringstream out;
  {
    TextBuffer buffer(out);
    write_trace_tree(allocations, buffer);
  }
  return out.str();
}

}  // namespace

TEST_CASE("heapsnapshot: the tree of allocations, as V8 writes it", "[unit]") {
  HeapsnapshotAllocations trace;
  CHECK(tree_text(trace).empty());
  trace.functions.resize(3);
  trace.calls = {{0, 0, 0, {1, 3}}, {1, 2, 40, {2}}, {2, 3, 50000000000, {}}, {2, 4, 60, {}}};
  CHECK(tree_text(trace) == "1,0,0,0,[2,1,2,40,[3,2,3,50000000000,[]],4,2,4,60,[]]");
  trace.made_in = {{0x1000, 2}};
  CHECK(trace.number_of_call(0x1000) == 3);
  CHECK(trace.number_of_call(0x2000) == 0);
}

TEST_CASE("heapsnapshot: a tree of allocations of any depth", "[unit]") {
  constexpr std::uint32_t deep = 1'000'000;
  HeapsnapshotAllocations trace;
  trace.calls.resize(deep);
  for (std::uint32_t i = 0; i + 1 < deep; ++i) trace.calls[i].callees = {i + 1};
  CHECK(tree_text(trace).ends_with(std::string(deep, ']')));
}

}  // namespace luaspy::heapsnapshot_allocations_test
