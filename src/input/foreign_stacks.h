#pragma once
// The frames and stacks of a file that is not a recording of luaspy. Its text is made printable and is bounded, and so
// is the number of stacks: a few bytes of a file can refer to much.

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "input/recording_part.h"

namespace luaspy {

class ForeignStacks {
 public:
  explicit ForeignStacks(RecordingPart& part) : part_(part) {}

  FrameId frame(Frame frame);
  StackId stack(StackId outer, FrameId frame);
  // Outermost first.
  StackId stack(std::span<const FrameId> frames);
  // The thread of a file that does not tell threads apart.
  ThreadId only_thread();
  ThreadId thread(ThreadInfo thread);

  // False once the file has more of something than luaspy keeps. Nothing is added then.
  bool has_room() const { return has_room_; }
  static constexpr std::string_view no_room = "it has more functions, stacks or threads than luaspy reads";

 private:
  RecordingPart& part_;
  std::size_t text_bytes_ = 0;
  std::size_t threads_ = 0;
  bool has_room_ = true;
};

}  // namespace luaspy
