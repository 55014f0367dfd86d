#pragma once
// Where objects were made, in a .heapsnapshot: a tree of calls, as V8's allocation tracker keeps it
// (src/profiler/allocation-tracker.cc) and DevTools reads it (AllocationProfile.ts).

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/memory.h"
#include "base/text_buffer.h"

namespace luaspy {

// Empty: not known.
struct HeapsnapshotAllocations {
  struct Function {
    std::string name, file;
    int line = 0;  // 0: unknown
  };
  // A function, called by one stack.
  struct Call {
    std::uint32_t function = 0;           // index of `functions`
    std::int64_t objects = 0, bytes = 0;  // that it has allocated itself
    std::vector<std::uint32_t> callees;   // indexes of `calls`
  };
  // The first of each is no function: it calls those that begin a stack.
  std::vector<Function> functions;
  std::vector<Call> calls;
  std::unordered_map<Address, std::uint32_t> made_in;  // index of `calls`, by object

  // The number in the file of the call that has made an object; 0: not known.
  std::uint32_t number_of_call(Address object) const;
};

// The elements of `trace_tree`: each call has its callees in it.
void write_trace_tree(const HeapsnapshotAllocations& allocations, TextBuffer& out);

}  // namespace luaspy
