#pragma once
// What the Lua half and the merge want to know about native functions.

#include <cstddef>
#include <vector>

#include "base/frame.h"
#include "luastate/luajit/vm_code.h"

namespace luaspy {

class NativeFunctions {
 public:
  virtual ~NativeFunctions() = default;
  // Is this frame luaV_execute, or LuaJIT's virtual machine, or machine code that it made?
  virtual bool executes_lua(const NativeFrame& frame) const = 0;
  // If it is LuaJIT's virtual machine that has called lj_trace_exit: where it has told which exit
  // that is. Else nullptr.
  virtual const TraceExit* trace_exit(const NativeFrame&) const { return nullptr; }
  // Is it one of the functions that a step or a full run of PUC's collector goes through? False
  // where that cannot be told, and for LuaJIT, which says it in other ways.
  virtual bool collects(const NativeFrame&) const { return false; }
  // Is it known by its name to carry a call and do nothing else?
  virtual bool carries(const NativeFrame& frame) const = 0;
  // Is it in the same module as a Lua core? Then it may be left out between two frames that mean
  // something.
  virtual bool in_core_module(const NativeFrame& frame) const = 0;
  // May there be code at this address, as far as the mappings tell?
  virtual bool may_be_code(Address) const { return true; }
  // The machine code of the luaV_execute that `frame` is in; empty if it is not to be had.
  virtual std::vector<std::byte> code(const NativeFrame& frame) const = 0;
  // How a person reads it: by symbol, else by module and the function's start in it, else by
  // module. Never by a raw pc, so that samples of one function add up.
  virtual const Frame& describe(const NativeFrame& frame) const = 0;
  virtual Frame describe_entry(Address entry) const = 0;  // the same for a function's first instruction
};

}  // namespace luaspy
