#pragma once
// LuaJIT's virtual machine as machine code (vm_x64.dasc): where it is in an image, and how big its
// C frame is. Pure functions of code bytes. The VM has one entry of call frame information at most,
// and that is right only between saveregs and restoreregs, and only outside of the VM's own
// subroutines.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/memory.h"

namespace luaspy {

// ->vm_exit_handler: it stores jit_State.parent and exitno, the trace and the number of the exit
// that it is left by, and calls lj_trace_exit.
struct TraceExit {
  Address return_address = 0;
  std::int32_t parent = 0, exitno = 0;  // from DISPATCH (r14) on
};

struct VmCode {
  Address start = 0, end = 0;
  unsigned frame_size = 0;     // CFRAME_SIZE: from cframe to the caller's sp, return address included
  bool saves_r12_r13 = false;  // built with LUAJIT_NO_UNWIND (and Tarantool's): the frame has these two as well

  // Code that builds the frame, or takes it down.
  struct Sequence {
    Address start = 0, end = 0;
    bool builds = false;
    bool rbp_before = false;  // an FFI callback's: its stub has pushed rbp
  };
  std::vector<Sequence> sequences;
  std::optional<TraceExit> trace_exit;  // nothing without the JIT compiler

  bool contains(Address address) const { return address >= start && address < end; }
  // How far below the caller's sp (the frame's CFA) sp is at `pc`, if `pc` is where that changes.
  std::optional<unsigned> depth_at(Address pc) const;
};

// The VM in `code`, which is mapped at `address`; nullopt if there is none.
std::optional<VmCode> find_vm_code(Address address, std::span<const std::byte> code);

}  // namespace luaspy
