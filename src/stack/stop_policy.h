#pragma once
// How much a stop reads: enough, and no more, as somebody stands still meanwhile.

#include <atomic>
#include <cstddef>

#include "base/address_space.h"

namespace luaspy {

// Asked by who reads in a stop, taught by who finishes the look; these may be two threads.
class StopPolicy {
 public:
  // Is the next look one that settles in the stop which states run? The first ones are, and some
  // after each one that had missed a state.
  bool takes_care();
  // A look was finished, and has or has not missed a state. A target that makes its coroutines at
  // ever new addresses is looked at with care the more often that is so: looking again would see
  // less of those that live for microseconds.
  void learn(bool missed);
  // The next look takes care, whatever has been learned.
  void take_care_once();

  // Bytes to read of a native stack, from sp on.
  std::size_t stack_bytes(const AddressSpace& space, Address sp) const;
  // What a fiber's stack needs is learned: too little cuts it, too much takes time in the stop. So
  // many were read and were not enough.
  void learn_stack_was_cut(std::size_t bytes);

 private:
  static constexpr int fewest_careful_looks = 64, most_careful_looks = 1 << 14;
  std::atomic<std::size_t> fiber_stack_bytes_ = 64 << 10;  // read of a stack whose bounds no mapping tells
  std::atomic<int> careful_looks_ = 8;                     // still to be made
  int next_careful_looks_ = fewest_careful_looks, hurried_looks_ = 0;
};

}  // namespace luaspy
