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
    std::int64_t start_ns = 0;  // since the recording began
    std::int64_t samples = 0;
    std::int64_t weight_ns = 0;  // of all of them: the run ends at start_ns + weight_ns
  };

  // A sample that stands for `weight_ns` up to `at_ns`. Times that overlap with the sample before
  // are moved behind it.
  void add(std::uint32_t situation, std::int64_t at_ns, std::int64_t weight_ns);
  void for_each(const std::function<void(const Run&)>& see) const;

 private:
  void put(const Run& run);

  // Of each run that is over: situation, samples times two, weight (varint.h). Where nothing was
  // sampled before it, samples times two is one more, and how long that lasted follows. A deque
  // grows by small pieces: a vector would take three times its size at the moment when it doubles.
  std::deque<std::uint8_t> bytes_;
  std::int64_t written_end_ns_ = 0;  // of the last run among the bytes
  Run last_;                         // not among the bytes yet
};

}  // namespace luaspy
