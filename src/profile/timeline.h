#pragma once
// The samples of one thread in the order of time, in some 7 bytes for each run of equal ones, so
// that hours fit into memory.

#include <cstdint>
#include <deque>
#include <functional>

namespace luaspy {

class Timeline {
 public:
  // Samples without a break of the same situation (Profile::SituationId).
  struct Run {
    std::uint32_t situation = 0;
    std::int64_t start_ns = 0, end_ns = 0;  // since the recording began
    std::int64_t samples = 0;
    std::int64_t weight = 0;  // of all of them, in the profile's unit; nanoseconds: end_ns - start_ns
  };

  // A sample that stands for `weight`, from `start_ns` to `end_ns`. One that overlaps with the
  // sample before is moved behind it.
  void add(std::uint32_t situation, std::int64_t start_ns, std::int64_t end_ns, std::int64_t weight);
  void for_each(const std::function<void(const Run&)>& see) const;

 private:
  void put(const Run& run);

  // Of each run that is over: situation, samples with two flags below them, weight (varint.h). With
  // gap_bit, for how many ns nothing was sampled before it follows; with length_bit, how many ns it
  // lasted, else as many as it weighs. A deque grows by small pieces: a vector would take three
  // times its size at the moment when it doubles.
  std::deque<std::uint8_t> bytes_;
  std::int64_t written_end_ns_ = 0;  // of the last run among the bytes
  Run last_;                         // not among the bytes yet
};

}  // namespace luaspy
