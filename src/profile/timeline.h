#pragma once
// The samples of one thread in the order of time. A run of equal samples takes about 7 bytes, so
// that hours fit into memory.

#include <cstdint>
#include <deque>
#include <functional>

namespace luaspy {

class Timeline {
 public:
  // Successive samples of the same situation (Profile::SituationId) without a gap.
  struct Run {
    std::uint32_t situation = 0;
    std::int64_t start_ns = 0, end_ns = 0;  // since the recording began
    std::int64_t samples = 0;
    std::int64_t weight = 0;  // of all its samples, in the profile's unit; nanoseconds: end_ns - start_ns
  };

  // Adds a sample with this weight, or several with this weight together, from `start_ns` to `end_ns`. If it overlaps
  // with the previous sample, it is moved behind that.
  void add(std::uint32_t situation, std::int64_t start_ns, std::int64_t end_ns, std::int64_t weight,
           std::int64_t samples = 1);
  void for_each(const std::function<void(const Run&)>& see) const;

 private:
  void put(const Run& run);

  // For each finished run: situation, samples with two flags in the lowest bits, weight (varint.h).
  // With gap_bit, the ns without samples before the run follow; with length_bit, its duration in
  // ns, which otherwise equals its weight. A deque grows in small pieces: a vector would take three
  // times its size at the moment when it doubles.
  std::deque<std::uint8_t> bytes_;
  std::int64_t written_end_ns_ = 0;  // of the last run among the bytes
  Run last_;                         // not among the bytes yet
};

}  // namespace luaspy
