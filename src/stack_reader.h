#pragma once
// From registers and memory to a stack: what is read while a thread stands still, and what becomes of it once it runs again.
// It knows the target's mappings and files; which thread, when, and how it is stopped is the sampler's business.

#include <string>
#include <vector>

#include "attach/process.h"
#include "attach/snapshot.h"
#include "lua_reader.h"
#include "native_code.h"
#include "sample.h"

namespace luaspy {

// The native frames of a thread on which what `lua` has read last runs: the unwinder, LuaJIT's virtual machine and its traces. Code without
// a file may be a trace's: which one is asked when the walk comes to it, and tells how to go on.
Unwinder::End unwind_natives(const Registers& registers, const Memory& stack, const Modules& modules, Unwinder& unwinder, NativeCode& native, LuaReader& lua,
                             std::vector<NativeFrame>& natives);

class StackReader {
 public:
  // `process` and `memory` have to outlive it.
  StackReader(Process& process, const Memory& memory, MergeOptions merging, WalkLimits limits);

  // Reads the target's mappings again and looks for Lua in what is new.
  void refresh();
  // The same, if a stack had addresses that no mapping explains. Call between ticks.
  void settle();

  // The pages, beside the stack, that a look needed: they make the next look at the same thread one batch of reads.
  using Pages = std::vector<Address>;

  // In the stop: reads, and what decides what to read. The native stack, the states that run, and their calls. False if there is no
  // stack to read. What is read later than close() comes from the copy.
  bool read(const Registers& registers, const Pages& predicted);
  void close() { snapshot_.close(); }
  Pages touched() const { return snapshot_.touched(); }

  // After it: the stack, outermost first, what the VM was doing, and how good it all is.
  void finish(const Registers& registers, Sample& sample);

  const std::vector<LuaImage>& images() const { return detector_.images(); }
  std::vector<std::string> searched() const { return detector_.searched(); }
  std::vector<Dialect> rows_to_try() const { return detector_.rows(); }
  // Is there a lua_State in the target, on a thread's stack or anywhere in its memory?
  bool has_state() const { return lua_.saw_state() || lua_.finds_state(space_); }

  // Of the look that was made last.
  const LuaReader& lua() const { return lua_; }
  const std::vector<NativeFrame>& natives() const { return natives_; }
  const NativeCode& native_code() const { return native_; }
  const Modules& modules() const { return modules_; }
  const Unwinder& unwinder() const { return unwinder_; }
  const Snapshot& snapshot() const { return snapshot_; }

 private:
  std::size_t stack_size(Address sp) const;

  Process& process_;
  MergeOptions merging_;
  AddressSpace space_;
  Detector detector_;
  Modules modules_;
  Unwinder unwinder_;
  NativeCode native_;
  LuaReader lua_;
  Snapshot snapshot_;
  std::vector<NativeFrame> natives_;   // keeps its room from one look to the next
  std::size_t fiber_stack_bytes_ = 64 << 10;   // read of a stack whose bounds no mapping tells
  bool stale_ = false;
  int settles_to_skip_ = 0, refreshes_in_vain_ = 0;
};

}  // namespace luaspy
