#pragma once
// A stop, saved: what a target's memory and registers were, and which stack luaspy is to make of it. A text that a person can
// read and change:
//
//   luaspy stop 1
//   from lua5.4 of Debian 12, spin.lua coroutine
//   lua 5.4.4
//   register rsp 7ffd1000
//   stack 7ffd1000 8c10…                       bytes of the thread's stack from sp on, 32 a line, the first byte first
//   memory 55d0 8c10…                          bytes of anything else
//   native PC SP CFA FUNCTION FLAGS NAME       frames, innermost first; flags: x the VM, t its machine code, c carries a call, m core's module
//   saved rbx 55d0                             callee-saved registers of the frame above
//   expect main chunk (spin.lua:9)             outermost first, as dump prints it
//   include FILE                               another file first; later lines win
//
// What the file does not hold cannot be read.

#include <map>
#include <string>
#include <vector>

#include "attach/snapshot.h"
#include "core.h"
#include "lua_reader.h"
#include "luastate/detect.h"

namespace luaspy::replay {

class SavedMemory : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override;
  void put(Address address, std::span<const std::byte> bytes);
  const std::map<Address, std::byte>& bytes() const { return bytes_; }
  std::map<Address, std::byte>& bytes() { return bytes_; }

 private:
  std::map<Address, std::byte> bytes_;
};

struct SavedStop : Core {
  std::string from, version;
  Registers registers;
  Address stack_start = 0;
  std::vector<std::byte> stack;
  SavedMemory memory;            // the stack included
  std::vector<NativeFrame> natives;
  std::map<Address, std::string> flags;   // by the function's start
  std::map<Address, Frame> names;         // by the function's start
  std::vector<std::string> expected;

  bool executes_lua(const NativeFrame& frame) const override { return has(frame, 'x'); }
  bool is_machine_code(const NativeFrame& frame) const override { return has(frame, 't'); }
  const TraceExit* trace_exit(const NativeFrame&) const override { return nullptr; }   // not saved
  bool carries(const NativeFrame& frame) const override { return has(frame, 'x') || has(frame, 'c'); }
  bool in_core_module(const NativeFrame& frame) const override { return has(frame, 'm'); }
  std::vector<std::byte> code(const NativeFrame&) const override { return {}; }
  const Frame& describe(const NativeFrame& frame) const override;
  Frame describe_entry(Address entry) const override;

 private:
  bool has(const NativeFrame& frame, char flag) const;
};

SavedStop load_stop(const std::string& path);
void save_stop(const SavedStop& stop, std::ostream& out);

// Everything that comes after a stop, on the saved one.
struct Outcome {
  Stack stack;
  Quality quality;
};
Outcome replay(const SavedStop& stop);
// The same, but the stop keeps only what LuaReader::touch() tells it to.
Outcome replay_through_snapshot(const SavedStop& stop);

}  // namespace luaspy::replay
