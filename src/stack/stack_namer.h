#pragma once
// Names the frames of a joined stack. A look that finds a stack again makes nothing: frames and stacks
// are numbers of a table.

#include <vector>

#include "events/stack_table.h"
#include "stack/one_stack.h"

namespace luaspy {

class StackNamer {
 public:
  // `stacks` must outlive it.
  explicit StackNamer(StackTable& stacks) : stacks_(stacks) {}

  // This may read the symbols of a big program, so no thread should be stopped meanwhile. `stopped`: the
  // memory that was read in the stop.
  StackId name(LuaInspector& lua, const NativeFunctions& functions, const Joined& joined, const Memory& stopped);

  StackTable& stacks() { return stacks_; }

 private:
  void mark_start();

  StackTable& stacks_;
  // Of the stack, outermost first; kept for their memory.
  std::vector<FrameId> frames_;
  std::vector<const Frame*> shown_;
};

}  // namespace luaspy
