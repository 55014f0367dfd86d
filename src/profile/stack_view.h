#pragma once
// From what was recorded to what is shown: which samples, and which of their frames. This is
// decided here both for `record`, during the recording, and for `report`, from a file.

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/pattern.h"
#include "profile/profile.h"
#include "profile/view_options.h"

namespace luaspy {

// Converts stacks of `source` to stacks of `into`. The patterns of `shape` must be regular
// expressions: the command line has checked them.
class StackView {
 public:
  StackView(const ViewOptions& shape, const StackTable& source, StackTable& into);

  // nullopt: left out by --only or --ignore.
  std::optional<StackId> shaped(StackId stack, VmState vm_state, const ThreadInfo& thread);

 private:
  struct Root {
    StackId stack = empty_stack;    // of `into`
    ById<StackId, StackId> shaped;  // by stack of `source`; not_yet: not computed yet
  };
  static constexpr StackId not_yet{~0U};
  static constexpr FrameId not_shaped{~0U}, not_shown{~1U};

  Root& root_of(VmState vm_state, const ThreadInfo& thread);
  StackId shaped(StackId stack, Root& root);
  FrameId shaped_frame(FrameId frame);  // not_shown: it is left out
  bool has_match(const Pattern& pattern, ById<StackId, std::int8_t>& known, StackId stack);
  // The value of `stack` in `known`. If that is `unknown`, the value is next(value of the outer
  // stack, innermost frame), and is stored in `known`.
  template <typename Value, typename Next>
  Value climb(ById<StackId, Value>& known, Value unknown, StackId stack, Next next);

  ViewOptions shape_;
  std::optional<Pattern> only_, ignore_;
  const StackTable& source_;
  StackTable& into_;
  std::map<std::tuple<int, std::uint64_t, VmState>, Root> roots_;  // by process, its program, and state, if these have
                                                                   // a frame
  ById<FrameId, FrameId> frames_;                                  // by frame of `source`; not_shaped, not_shown
  FrameId collector_ = not_shaped, nothing_ = not_shaped;          // of `into`
  ById<StackId, std::int8_t> has_only_{1}, has_ignored_{1};        // by stack of `source`: -1 not known
  std::vector<StackId> chain_;                                     // of the last call; kept for its memory
};

}  // namespace luaspy
