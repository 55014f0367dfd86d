#pragma once
// LuaJIT's virtual machine as machine code (vm_*.dasc): where it is in an image, and what its C frame
// is like. Pure functions of code bytes, in the folder of each processor. The VM has at most one entry of call frame
// information. That is right only between saveregs and restoreregs, and only outside of the VM's
// own subroutines.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "luastate/native_functions.h"

namespace luaspy {

struct VmCode {
  Address start = 0, end = 0;
  unsigned frame_size = 0;  // CFRAME_SIZE: from cframe to the caller's sp
  struct Saved {
    unsigned number;  // of a register
    unsigned below;   // bytes
  };
  // What the frame has of its caller: callee-saved registers and the return address (as pc; from a
  // link register, if there is one), each so far below the caller's sp.
  std::vector<Saved> saved;
  struct SavedByTraces {
    unsigned number;
    int above;  // bytes
  };
  // The callee-saved registers that traces save in addition, each so far above cframe.
  std::vector<SavedByTraces> saved_by_traces;
  // Built with LUAJIT_NO_UNWIND, and Tarantool's: the frame has those, too. Their names; else "".
  std::string_view also_saved;

  // Code that builds or removes the frame.
  struct Sequence {
    Address start = 0, end = 0;
    bool builds = false;
    bool pushed_before = false;  // in an FFI callback: its stub has pushed the first register
  };
  std::vector<Sequence> sequences;
  std::optional<TraceExit> trace_exit;  // empty without the JIT compiler

  bool contains(Address address) const { return address >= start && address < end; }
  // The distance from sp at `pc` up to the caller's sp (the frame's CFA), if `pc` is where that
  // changes.
  std::optional<unsigned> depth_at(Address pc) const;
};

// The VM in `code`, which is mapped at `address`; nullopt if there is none.
std::optional<VmCode> find_vm_code(Address address, std::span<const std::byte> code);

}  // namespace luaspy
