#pragma once
// How much a stop reads: as little as possible, since a thread is stopped meanwhile.

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "base/address_space.h"

namespace luaspy {

// The thread that reads in a stop asks it; the thread that finishes the look teaches it. They may
// be two different threads.
class StopPolicy {
 public:
  // Should the next look determine the running states completely, within the stop? The first looks
  // do, and so do some looks after each one that missed a state. They also read all functions that are
  // called, even known ones.
  bool takes_care();
  // Call after each finished look. `missed`: it missed a state, or read a function that may have
  // been freed. The more often that happens, the more looks are made with care: a target may create
  // coroutines at ever new addresses, and looking again would underrepresent those that live for
  // microseconds.
  void record(bool missed);

  // Other Luas have been found in the target, and of no look before is anything known of their states.
  void begin_again() { careful_looks_ = std::max(careful_looks_.load(), first_careful_looks); }

  // Bytes to read of a native stack whose end is not known, from sp on. Only the kernel's mapping of
  // the main thread's stack is a stack and nothing else. Any other mapping may hold a thread's stack,
  // or the stacks of fibers with the heap between them, so that is a guess. `hurry`: a thread is
  // stopped meanwhile.
  struct StackBytes {
    std::size_t count = 0;
    bool guessed = false;  // the stack may go on
  };
  StackBytes stack_bytes(const AddressSpace& space, Address sp, bool hurry) const;
  // Learns how large stacks are: too little cuts the stack, too much takes time in the stop. `bytes`
  // were read and were not enough.
  void record_cut_stack(std::size_t bytes);

 private:
  static constexpr int first_careful_looks = 8, fewest_careful_looks = 64, most_careful_looks = 1 << 14;
  std::atomic<std::size_t> guessed_bytes_ = 64 << 10;     // of a stack whose end is not known
  std::atomic<int> careful_looks_ = first_careful_looks;  // careful looks still to be made
  int next_careful_looks_ = fewest_careful_looks, hurried_looks_ = 0;
};

}  // namespace luaspy
