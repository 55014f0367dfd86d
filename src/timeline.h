#pragma once
// The samples of one thread in the order of time, in some 7 bytes for each run of equal ones, so that hours fit into memory.

#include <cstdint>
#include <deque>
#include <functional>

namespace luaspy {

class Timeline {
 public:
  // Samples without a break of the same stack.
  struct Run {
    std::uint32_t stack = 0;
    std::int64_t samples = 0;
    std::int64_t weight_ns = 0;   // of all of them
  };

  void add(std::uint32_t stack, std::int64_t weight_ns);
  void for_each(const std::function<void(const Run&)>& see) const;

 private:
  void put(std::uint64_t number);

  // Of each run that is over: stack, samples, weight, as numbers of 7 bits a byte, the lowest first, all but the last byte with the high bit set.
  // A deque grows by small pieces: a vector would take three times its size at the moment when it doubles.
  std::deque<std::uint8_t> bytes_;
  Run last_;   // not among the bytes yet
};

}  // namespace luaspy
