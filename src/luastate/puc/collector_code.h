#pragma once
// Finds the functions of PUC Lua's garbage collector in the machine code of a core, without
// symbols. Pure functions of code bytes, in the folder of each processor.
//
// This uses two facts that hold in all releases (lgc.h, lgc.c). First, luaV_execute calls luaC_step
// after comparing GCdebt with 0 (luaC_condGC; 5.1: totalbytes with GCthreshold). Second, only the
// collector writes global_State.gcstate, apart from lua_newstate. So singlestep and similar
// functions are found among the callees of luaC_step. luaC_fullgc uses the same functions, nearly
// all of which are static: it is the function that calls two of them, or calls one and writes
// gcstate. (In 5.2 this is also true of lua_gc, which does little else.)

#include <functional>
#include <vector>

#include "base/memory.h"
#include "luastate/puc/layout.h"

namespace luaspy {

struct MachineFunction {
  Address start = 0;  // 0: there is no function
  std::vector<std::byte> code;
};
using FunctionAt = std::function<MachineFunction(Address)>;  // the function that contains an address

struct CollectorCode {
  Address step = 0;  // luaC_step; 0: not found
  // Start addresses, ascending: luaC_step, and the functions of all of the collector's other
  // frames.
  std::vector<Address> functions;
  bool has(Address function) const;
};

// `execute` is luaV_execute. The caller calls joins_collector() for each function of the core, and
// adds the start of those for which it returns true.
CollectorCode find_collector_code(const Layout& layout, const MachineFunction& execute, const FunctionAt& function_at);
bool joins_collector(const Layout& layout, const CollectorCode& collector, const MachineFunction& function);

}  // namespace luaspy
