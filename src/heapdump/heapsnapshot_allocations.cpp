#include "heapdump/heapsnapshot_allocations.h"

#include <string_view>

namespace luaspy {

std::uint32_t HeapsnapshotAllocations::number_of_call(Address object) const {
  const auto known = made_in.find(object);
  return known != made_in.end() ? 1 + known->second : 0;
}

// Stacks may be too deep for a recursion.
void write_trace_tree(const HeapsnapshotAllocations& allocations, TextBuffer& out) {
  if (allocations.calls.empty()) return;
  struct Open {
    std::uint32_t call = 0;
    std::size_t next = 0;  // of its callees
  };
  std::vector<Open> open;
  const auto begin = [&](std::string_view separator, std::uint32_t index) {
    const HeapsnapshotAllocations::Call& call = allocations.calls[index];
    out.put("{}{},{},{},{},[", separator, 1 + index, call.function, call.objects, call.bytes);
    open.push_back({index, 0});
  };
  begin("", 0);
  while (!open.empty()) {
    const std::vector<std::uint32_t>& callees = allocations.calls[open.back().call].callees;
    const std::size_t next = open.back().next++;
    if (next < callees.size()) {
      begin(next == 0 ? "" : ",", callees[next]);
    } else {
      out << "]";
      open.pop_back();
    }
  }
}

}  // namespace luaspy
