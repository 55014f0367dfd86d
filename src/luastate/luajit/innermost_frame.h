#pragma once
// Finds the innermost frame of a LuaJIT state. L->base is often outdated. Which register or field
// is newer depends on where the thread is: in a trace, leaving one, in the interpreter, or in
// something that the interpreter has called. The native frames show that.

#include <vector>

#include "arch/machine.h"
#include "luastate/locate.h"
#include "luastate/luajit/luajit_state.h"
#include "luastate/native_functions.h"
#include "luastate/running.h"

namespace luaspy {

// What is in the VM's registers.
struct VmRegisters {
  Address base;      // BASE
  Address c_base;    // BASE around some calls
  Address pc;        // PC
  Address dispatch;  // DISPATCH
  VmRegisters(const Machine::Luajit& numbers, const Registers& registers)
      : base(registers[numbers.base]),
        c_base(registers[numbers.c_base]),
        pc(registers[numbers.pc]),
        dispatch(registers[numbers.dispatch]) {}
};

// Where ->vm_exit_handler stores which exit it has taken (jit_State.parent and exitno).
struct ExitFields {
  Address parent = 0, number = 0;  // 0: not seen yet
};

class InnermostFrame {
 public:
  // One state of the look.
  struct Of {
    const ActiveState& activation;
    bool innermost;        // of those that run on the thread
    LuajitState& state;    // if the thread runs a trace, `trace` is set to it
    const Memory& memory;  // for its Lua stack
  };
  struct Natives {
    const std::vector<NativeFrame>& frames;  // the innermost first
    const NativeFunctions& functions;
  };
  // All that the arguments refer to must outlive this.
  InnermostFrame(const Machine& machine, Traces& traces, const Of& of, const Natives& natives, const LookMemory& look);

  // Where the walk begins. Valid as long as this object.
  const LuajitTop& top() const { return top_; }
  // Machine code may keep slots from this address on in registers; 0: none.
  Address trace_base() const { return trace_base_; }
  // Set if the thread is in lj_trace_exit: the next stops should read them.
  const ExitFields& exit_fields() const { return exit_fields_; }

 private:
  bool can_be(Address base, Address pc) const { return is_base(memory_, layout_, activation_.L, base, pc); }
  bool runs_trace() const { return vm_ != natives_.end() && vm_->in_trace; }
  bool has_left_trace(bool in_vm) const;
  Address find_trace_base() const;
  void find(bool in_vm);
  void find_in_trace();
  void find_in_interpreter();
  bool find_at_trace_exit();
  void find_outside_of_call();
  void use_saved();

  const Machine& machine_;
  Traces& traces_;
  const ActiveState& activation_;
  const LuajitLayout& layout_;
  bool innermost_;
  const std::vector<NativeFrame>& natives_;
  const NativeFunctions& functions_;
  const Memory& stopped_;
  const Memory& memory_;
  LuajitState& state_;
  VmRegisters registers_;
  // The frame of the VM, or of a trace, on top of the state's innermost C frame.
  std::vector<NativeFrame>::const_iterator vm_;
  LuajitTop top_;
  InlinedCode code_;                    // referred to by top_
  std::vector<InlinedFrame> entering_;  // the same
  Address trace_base_ = 0;
  ExitFields exit_fields_;
};

}  // namespace luaspy
