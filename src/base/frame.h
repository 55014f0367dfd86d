#pragma once
// The vocabulary of stacks. While walking, innermost comes first; once merged, outermost first.

#include <cstdint>
#include <string>
#include <vector>

#include "base/registers.h"

namespace luaspy {

// How a native frame was reached from the one inside it.
enum class Step : std::uint8_t {
  registers,  // the innermost: the thread's own registers
  cfi,        // by call frame information: exact
  rule,       // by what is known about the code from other sources (FrameRule, unwinder.h): exact
  code,  // without call frame information: by what the function's instructions do to sp, and by the call instruction
         // before the return address
  scan,  // without that either: the nearest word on the stack that is a return address after a call instruction
};

struct NativeFrame {
  NativeFrame() {}     // not `= default`, which would clear the registers first
  Address pc = 0;      // innermost: the next instruction; callers: the return address
  Address lookup = 0;  // what symbols and tables are looked up with: pc, or pc - 1 for a caller (the call itself)
  Address sp = 0;      // in this frame
  Address cfa = 0;     // canonical frame address (DWARF 5, 6.4): sp before the call that made this frame; 0 if unknown
  Address function = 0;  // where the function that contains lookup starts; 0 if unknown
  Step step = Step::registers;
  bool in_trace = false;  // in machine code that LuaJIT generated: a trace, or the code that leads from one to another
  Registers registers;    // as they are in this frame; callee-saved ones if they could be recovered
};

// One frame as a person reads it.
struct Frame {
  enum class Kind : std::uint8_t {
    lua,     // a Lua function: name, file, lines
    c,       // a C function that Lua called: name (and file: its module)
    native,  // any other native function: name and module, or module+offset of its start
    marker,  // not a function: "(...tail calls...)", "[epoll_wait]"
    kernel,  // a function of the kernel: name, and "[kernel]" or its kernel module as "[ext4]"
  };
  Kind kind = Kind::native;
  std::string name;
  std::string file;           // lua: the chunk as it was named; c, native: the module's file name; kernel: see there
  int line_defined = 0;       // lua: 0 for a main chunk
  int line = 0;               // lua: the current line; 0 if unknown
  bool line_is_near = false;  // lua: in machine code of LuaJIT, whose lines are known only at snapshots: `line` is that
                              // of the nearest one
  std::uint32_t prototype = 0;  // lua: distinguishes functions that begin on the same line (Prototype::identity); 0 if
                                // unknown, and for main chunks
  // Which part of the program it is: what a view shows is decided by it (mode.h).
  enum class Part : std::uint8_t {
    program,
    vm,     // Lua's own code: what it does for a Lua function, or what carries a call
    start,  // what runs before main(), or before the function of a thread; and lua.c's frames before its script
  };
  Part part = Part::program;
  bool own_name = false;  // lua: it is known where the function lives (luastate/function_name.h), so this is its name,
                          // whatever others of the same source are called; false: what the source or the caller says
  int twin = 0;  // lua: its number, from 2 on, among functions that begin on the same line and have the same name; 0
                 // for the first or only one

  bool operator==(const Frame&) const = default;
};

// Whether a native frame has no symbol: its name is that of its module, or a place in it.
bool is_place(const Frame& frame);

// A frame that is not a function.
Frame marker(std::string text);
// The marker of a state of the VM, "[garbage collector]", and whether a frame is one.
enum class VmState : std::uint8_t;
Frame state_marker(VmState state);
bool is_state_marker(const Frame& frame, VmState state);

// How frames read in text: "name (file:line)" for Lua, "name (file)" for a main chunk, "name [C]"
// for a C function that Lua called, "name (module)" for other native ones, "name [kernel]" for the
// kernel's. "name (file:line#2)" is
// a second function of that name that begins on the same line. With `lines`, Lua frames show the
// current line ("~5" where it is the nearest one known), else the one of definition.
std::string describe(const Frame& frame, bool lines);

using Stack = std::vector<Frame>;

}  // namespace luaspy
