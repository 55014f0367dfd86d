#pragma once
// Unwinds frames of LuaJIT's virtual machine and of the machine code that it generates. Traces have
// no call frame information, and the VM's is wrong in its subroutines. But every entry into the VM
// leaves a C frame of fixed layout that L->cframe leads to, and traces run on top of it. So the
// caller of any of this code is the caller of the nearest C frame at or above sp.

#include <functional>
#include <vector>

#include "stack/native_code.h"
#include "unwind/unwinder.h"

namespace luaspy {

class VmFrames : public FrameRule {
 public:
  struct CodeRange {
    Address start = 0, end = 0;  // [start, end); 0, 0: none
  };
  // Called for a frame in code without a file: returns the range of the trace it is in.
  using TraceOf = std::function<CodeRange(const NativeFrame&)>;

  // `cframes`: the C frames of all states that run on the thread; `on_trace`: the thread runs
  // machine code.
  VmFrames(const Machine& machine, const Modules& modules, const NativeCode& native, std::vector<Address> cframes,
           bool on_trace, TraceOf trace_of);

  bool step(const NativeFrame& from, const Memory& stack, Registers& caller) const override;

  // Is this in a trace that an earlier step() found?
  bool in_trace(Address lookup) const;

 private:
  // Sets the caller's registers as they are after leaving the C frame at `cframe`. False if that
  // has no return address.
  static bool leave(Address cframe, const VmCode& vm, const Memory& stack, Registers& caller);
  // The return address of a C frame below `cfa`, of which `built` bytes exist; nullopt if that is no
  // address after a call.
  std::optional<Address> return_address(const NativeFrame& from, const VmCode& vm, Address cfa, unsigned built,
                                        const Memory& stack) const;
  bool follows_a_call(Address address) const;
  bool meets_trace(const NativeFrame& frame) const;

  const Machine& machine_;
  const Modules& modules_;
  const NativeCode& native_;
  std::vector<Address> cframes_;  // ascending
  bool on_trace_;
  TraceOf trace_of_;
  mutable std::vector<CodeRange> traces_;  // found so far
};

}  // namespace luaspy
