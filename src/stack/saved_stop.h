#pragma once
// A saved stop: a target's memory and registers, and the stack that luaspy should make of it. A
// text format that a person can read and change:
//
//   luaspy stop 1
//   from lua5.4 of Debian 12, spin.lua coroutine
//   processor x86_64                      Machine::name; a file without this line is of x86_64
//   lua 5.4.4
//   register rsp 7ffd1000
//   stack 7ffd1000 8c10…                  bytes of the thread's stack from sp on, 32 a line
//   memory 55d0 8c10…                     bytes of anything else
//   native PC SP CFA FUNCTION FLAGS NAME  frames, innermost first; flags: x the VM, t its machine
//                                         code, c carries a call, m in the core's module, l Lua's
//                                         own code, h the host's
//   saved rbx 55d0                        callee-saved registers of the frame above
//   expect main chunk (spin.lua:9)        outermost first, as dump prints it
//   include FILE                          reads another file first; later lines win
//
// Bytes are written in the order of their addresses. Memory that is not in the file cannot be read.
// The processor need not be the one that luaspy is built for: nothing is unwound again.

// The file holds contents of the target's memory: protect it as you would protect those.

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "arch/machine.h"
#include "base/memory.h"
#include "luastate/native_functions.h"

namespace luaspy {

class SavedMemory : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override;
  void put(Address address, std::span<const std::byte> bytes);
  const std::map<Address, std::byte>& bytes() const { return bytes_; }
  std::map<Address, std::byte>& bytes() { return bytes_; }

 private:
  std::map<Address, std::byte> bytes_;
};

struct SavedStop : NativeFunctions {
  const Machine* machine = find_machine("x86_64");
  std::string from, version;
  Registers registers;
  Address stack_start = 0;
  std::vector<std::byte> stack;
  SavedMemory memory;  // including the stack
  std::vector<NativeFrame> natives;
  std::map<Address, std::string> flags;  // by the function's start
  std::map<Address, Frame> names;        // by the function's start
  std::vector<std::string> expected;

  bool executes_lua(const NativeFrame& frame) const override { return has(frame, 'x'); }
  const TraceExit* trace_exit(const NativeFrame&) const override { return nullptr; }  // not saved
  bool carries(const NativeFrame& frame) const override { return has(frame, 'x') || has(frame, 'c'); }
  bool in_core_module(const NativeFrame& frame) const override { return has(frame, 'm'); }
  LuaCode lua_code(const NativeFrame& frame) const override;
  std::vector<std::byte> code(const NativeFrame&) const override { return {}; }
  const Frame& describe(const NativeFrame& frame) const override;

  bool has(const NativeFrame& frame, char flag) const;
};

void save_stop(const SavedStop& stop, std::ostream& out);

}  // namespace luaspy
