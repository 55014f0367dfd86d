#include "stack/stop_policy.h"

#include <algorithm>

namespace luaspy {
namespace {

constexpr std::size_t most_stack_bytes = 1 << 20;  // limit for a native stack; a deeper one is cut
// A larger mapping is not a thread's stack, but may hold the stacks of fibers.
constexpr Address most_thread_stack = 64 << 20;
constexpr std::size_t blind_stack_bytes = 16 << 10;  // for a stack in no known mapping

}  // namespace

bool StopPolicy::takes_care() {
  if (careful_looks_ <= 0) return false;
  --careful_looks_;
  return true;
}

void StopPolicy::learn(bool missed) {
  constexpr int looks_to_calm_down = 1024;
  if (!missed) {
    if (++hurried_looks_ % looks_to_calm_down == 0)
      next_careful_looks_ = std::max(next_careful_looks_ / 4, fewest_careful_looks);
    return;
  }
  careful_looks_ = next_careful_looks_;
  next_careful_looks_ = std::min(4 * next_careful_looks_, most_careful_looks);
}

void StopPolicy::take_care_once() { careful_looks_ = std::max(careful_looks_.load(), 1); }

std::size_t StopPolicy::stack_bytes(const AddressSpace& space, Address sp) const {
  const Mapping* mapping = space.find(sp);
  if (mapping == nullptr) {
    // The main thread's stack grows downwards; it was smaller when the mappings were read.
    const auto above = std::ranges::upper_bound(space.mappings(), sp, {}, &Mapping::start);
    if (above != space.mappings().end() && above->path == "[stack]") mapping = &*above;
  }
  if (mapping == nullptr || !mapping->readable) return blind_stack_bytes;
  const bool bounded = mapping->path == "[stack]" || mapping->end - mapping->start <= most_thread_stack;
  return std::min<std::size_t>(mapping->end - sp, bounded ? most_stack_bytes : fiber_stack_bytes_.load());
}

void StopPolicy::learn_stack_was_cut(std::size_t bytes) {
  const std::size_t fiber_bytes = fiber_stack_bytes_;
  if (bytes == fiber_bytes) fiber_stack_bytes_ = std::min(2 * fiber_bytes, most_stack_bytes);
}

}  // namespace luaspy
