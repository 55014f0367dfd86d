#include "input/foreign_stacks.h"

#include <algorithm>

#include "base/text.h"

namespace luaspy {
namespace {

constexpr std::size_t most_stacks = 1 << 22;  // a recording of hours has some 100,000

}  // namespace

FrameId ForeignStacks::frame(Frame frame) {
  frame.name = printable(frame.name, longest_name);
  frame.file = printable(frame.file, longest_name);
  frame.line = std::max(frame.line, 0), frame.line_defined = std::max(frame.line_defined, 0);
  text_bytes_ += frame.name.size() + frame.file.size();
  has_room_ = has_room_ && text_bytes_ <= most_text;
  return has_room_ ? part_.tables().stacks.intern(frame) : part_.tables().stacks.intern(marker("[...]"));
}

StackId ForeignStacks::stack(StackId outer, FrameId frame) {
  if (part_.tables().stacks.nodes().size() >= most_stacks) has_room_ = false;
  return has_room_ ? part_.tables().stacks.intern({outer, frame}) : outer;
}

StackId ForeignStacks::stack(std::span<const FrameId> frames) {
  StackId stack = empty_stack;
  for (const FrameId frame : frames) stack = this->stack(stack, frame);
  return stack;
}

ThreadId ForeignStacks::only_thread() { return thread({}); }

ThreadId ForeignStacks::thread(ThreadInfo thread) {
  thread.name = printable(thread.name, longest_name);
  thread.process = printable(thread.process, longest_name);
  if (++threads_ > most_threads && !part_.tables().threads.find(thread.key())) {
    has_room_ = false;
    return ThreadId{0};
  }
  return part_.thread(thread);
}

}  // namespace luaspy
