#include "sampling/result_ring.h"

namespace luaspy {

TickResult* ResultRing::open(const std::shared_ptr<TrackedThread>& thread) {
  if (put_ - taken_.load(std::memory_order_acquire) == size) return nullptr;
  std::unique_ptr<TickResult>& place = places_[put_ % size];
  if (place == nullptr || place->thread == nullptr || place->thread->program != thread->program)
    place = std::make_unique<TickResult>(thread->process.memory());
  place->thread = thread;
  place->number = thread->ticks.number();
  place->at = thread->ticks.at();
  place->passed_ns = thread->ticks.passed_ns();
  place->kind = TickResult::Kind::loss;
  place->loss = Loss::none;
  place->stopped_ns = 0;
  place->cpu = thread->cpu;
  place->remote = false;
  return place.get();
}

}  // namespace luaspy
