#include "inspection.h"

namespace luaspy {

std::optional<Sample> Inspector::look_at(Thread& thread) {
  constexpr int tries = 20;   // one that moves while it is read asleep is looked at again
  std::optional<Sample> sample;
  for (int i = 0; i < tries; ++i) {
    sample = session_.sampler().sample(thread);
    if (!sample || (sample->loss != Loss::moved && sample->loss != Loss::not_stopped)) break;
  }
  if (!sample || sample->loss == Loss::ended) return std::nullopt;
  Sample& last = last_[thread.tid()];
  if (!sample->again) last = std::move(*sample);
  return last;
}

ProcessLook Inspector::look() {
  const system::Clock::time_point now = system::Clock::now();
  if (!first_) first_ = now;
  ProcessLook look;
  Process& process = session_.target().process();
  look.pid = process.pid();
  look.command = process.command();
  look.time = std::chrono::duration<double>(now - *first_).count();
  for (const auto& thread : process.threads()) {
    const Thread::Times times = thread->times();
    if (std::optional<Sample> sample = look_at(*thread)) look.threads.push_back({thread->tid(), thread->name(), std::move(*sample), times});
  }
  look.images = session_.sampler().reader().images();
  look.rows = session_.sampler().reader().lua().rows();
  return look;
}

}  // namespace luaspy
