#pragma once
// PUC Lua's garbage collector as machine code: which functions of a core are its own, found without
// symbols. Pure functions of code bytes; x86-64.
//
// Two facts of all releases lead to them (lgc.h, lgc.c). luaV_execute calls luaC_step where it has
// compared GCdebt with 0 (luaC_condGC; 5.1: totalbytes with GCthreshold). And what writes
// global_State.gcstate is the collector: nothing else does but lua_newstate. So singlestep and its
// like are found below luaC_step. luaC_fullgc works through the same functions, which are static
// but for few: it is what calls two of them, or one and writes gcstate. (So is lua_gc in 5.2, which
// does little else.)

#include <functional>
#include <vector>

#include "base/memory.h"
#include "luastate/puc/layout.h"

namespace luaspy {

struct MachineFunction {
  Address start = 0;  // 0: there is none
  std::vector<std::byte> code;
};
using FunctionAt = std::function<MachineFunction(Address)>;  // the one that contains an address

struct CollectorCode {
  Address step = 0;                // luaC_step; 0: it cannot be told
  std::vector<Address> functions;  // where those start that hold all of the collector's other frames, and luaC_step;
                                   // ascending
  bool has(Address function) const;
};

// `execute` is luaV_execute. Of each function of the core that joins_collector() says yes to, the
// caller adds the start.
CollectorCode find_collector_code(const Layout& row, const MachineFunction& execute, const FunctionAt& function_at);
bool joins_collector(const Layout& row, const CollectorCode& collector, const MachineFunction& function);

}  // namespace luaspy
