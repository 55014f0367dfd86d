#include "sampling/last_samples.h"

#include <algorithm>
#include <utility>

namespace luaspy {

void LastSamples::complete(ThreadId thread, std::int64_t at_ns, Sample& sample) {
  if (sample.loss != Loss::none) return;
  if (!last_.has(thread)) last_.resize(tables_.threads.size());
  Last& last = last_[thread];
  if (!sample.again) {
    last.sample = sample;
    last.sample.heaps.clear();
  } else if (last.at_ns < 0) {
    sample.loss = Loss::left_out;
    return;
  } else {
    const std::int64_t stopped_ns = sample.stopped_ns;
    sample = last.sample;
    sample.stopped_ns = stopped_ns;
  }
  last.at_ns = at_ns;
}

bool LastSamples::tables_are_full() const {
  return tables_.stacks.nodes().size() > stacks_room_ || tables_.threads.size() > threads_room_;
}

void LastSamples::make_room() {
  stacks_room_ = std::max(most_stacks, 2 * tables_.stacks.nodes().size());
  threads_room_ = std::max(most_threads, 2 * tables_.threads.size());
}

void LastSamples::renew_tables(std::int64_t now_ns) {
  constexpr std::int64_t lately_ns = 10'000'000'000;
  const EventTables before = std::exchange(tables_, {});
  const ById<ThreadId, Last> all = std::exchange(last_, {});
  for (std::uint32_t i = 0; i < all.size() && tables_.threads.size() < most_threads / 2; ++i) {
    Last last = all[ThreadId{i}];
    if (last.at_ns < 0 || last.at_ns < now_ns - lately_ns || last.sample.state == Sample::State::running) continue;
    last.sample.stack = tables_.stacks.intern(before.stacks.frames_of(last.sample.stack));
    last.sample.labels = tables_.labels.intern(before.labels[last.sample.labels]);
    (void)tables_.threads.intern(before.threads[ThreadId{i}]);
    last_.add(std::move(last));
  }
  make_room();
}

}  // namespace luaspy
