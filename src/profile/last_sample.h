#pragma once
// Resolves samples that only repeat their thread's last one.

#include <vector>

#include "base/sample.h"
#include "profile/stack_table.h"

namespace luaspy {

// A thread's last sample, with its stack as a number.
class LastSample {
 public:
  // Returns the facts of `sample`, which must not have a loss, without its stack. The stack is
  // interned in `stacks`, which must be the same table in each call.
  const Sample& take(const Sample& sample, StackTable& stacks) {
    if (!sample.again) {
      stacks.intern(sample.stack, stacks_);
      facts_ = {sample.state, Loss::none, false, {}, sample.vm_state, 0, sample.quality};
    }
    facts_.stopped_ns = sample.stopped_ns;
    return facts_;
  }
  StackTable::StackId stack() const { return stacks_.empty() ? 0 : stacks_.back(); }

 private:
  std::vector<StackTable::StackId> stacks_;  // see StackTable::intern
  Sample facts_;
};

}  // namespace luaspy
