#pragma once
// A piece of machine code that LuaJIT has made.

#include <cstdint>

#include "base/memory.h"

namespace luaspy {

struct Trace {
  Address object = 0;  // GCtrace
  unsigned number = 0;
  Address mcode = 0;
  std::uint32_t size = 0;                 // bytes of machine code
  Address start_proto = 0, start_pc = 0;  // the bytecode where it began
  unsigned root = 0;                      // of a side trace: the trace at the root of its tree
  Address ir = 0;                         // GCtrace.ir, which is biased: instruction REF_BASE is 0x8000 behind it
  bool contains(Address pc) const { return pc >= mcode && pc < mcode + size; }
};

// Where a side trace begins: at this exit of that trace.
struct TraceStart {
  unsigned parent = 0, exit = 0;  // parent: 0: it is a root trace, or its parent is not known
};
TraceStart start_of(const Memory& memory, const Trace& trace);

}  // namespace luaspy
