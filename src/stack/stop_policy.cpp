#include "stack/stop_policy.h"

#include <algorithm>

namespace luaspy {
namespace {

constexpr std::size_t most_stack_bytes = 1 << 20;  // limit for a native stack; a deeper one is cut
// A larger mapping is not a thread's stack, but may hold the stacks of fibers.
constexpr Address most_thread_stack = 64 << 20;
constexpr std::size_t blind_stack_bytes = 16 << 10;  // for a stack in no known mapping
constexpr std::size_t unhurried_bytes = 256 << 10;   // where there is time

}  // namespace

bool StopPolicy::takes_care() {
  if (careful_looks_ <= 0) return false;
  --careful_looks_;
  return true;
}

void StopPolicy::record(bool missed) {
  constexpr int looks_to_calm_down = 1024;
  if (!missed) {
    if (++hurried_looks_ % looks_to_calm_down == 0)
      next_careful_looks_ = std::max(next_careful_looks_ / 4, fewest_careful_looks);
    return;
  }
  careful_looks_ = next_careful_looks_;
  next_careful_looks_ = std::min(4 * next_careful_looks_, most_careful_looks);
}

StopPolicy::StackBytes StopPolicy::stack_bytes(const AddressSpace& space, Address sp, bool hurry) const {
  const Mapping* mapping = space.find(sp);
  if (mapping == nullptr) {
    // The main thread's stack grows downwards; it was smaller when the mappings were read.
    const auto above = std::ranges::upper_bound(space.mappings(), sp, {}, &Mapping::start);
    if (above != space.mappings().end() && above->path == "[stack]") mapping = &*above;
  }
  if (mapping == nullptr || !mapping->readable) return {blind_stack_bytes, false};
  const auto most = std::min<std::size_t>(mapping->end - sp, most_stack_bytes);
  const bool is_stack = mapping->path == "[stack]" ||
                        (!hurry && mapping->path != "[heap]" && mapping->end - mapping->start <= most_thread_stack);
  const std::size_t guess = std::max(guessed_bytes_.load(), hurry ? 0 : unhurried_bytes);
  return is_stack || most <= guess ? StackBytes{most, false} : StackBytes{guess, true};
}

void StopPolicy::record_cut_stack(std::size_t bytes) {
  const std::size_t guessed = guessed_bytes_;
  if (bytes == guessed) guessed_bytes_ = std::min(2 * guessed, most_stack_bytes);
}

}  // namespace luaspy
