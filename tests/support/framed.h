#pragma once
// Samples as tests write them down: with their frames, where those of luaspy have a number.

#include "base/sample.h"
#include "events/event_tables.h"
#include "profile/profile.h"

namespace luaspy {

struct FramedSample : Sample {
  Stack stack{};  // outermost first
};

inline Sample numbered(StackTable& stacks, const FramedSample& framed) {
  Sample sample = framed;
  sample.stack = stacks.intern(framed.stack);
  return sample;
}

inline void add_framed(Profile& profile, const ThreadInfo& thread, const Tick& tick, const FramedSample& sample) {
  const std::uint32_t index = profile.index_of(thread);
  if (sample.loss != Loss::none) profile.add_lost(sample.loss, sample.stopped_ns);
  else profile.add(index, tick, numbered(profile.stacks(), sample));
}

}  // namespace luaspy
