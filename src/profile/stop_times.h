#pragma once
// How long a target was stopped: a histogram of constant size, so that a recording of a day takes
// no more memory than one of a minute.

#include <array>
#include <cstdint>

namespace luaspy {

class StopTimes {
 public:
  void add(std::int64_t ns);
  StopTimes& operator+=(const StopTimes& other);
  std::int64_t count() const { return count_; }
  std::int64_t total_ns() const { return total_; }
  // The time that a share (0 to 1) of all stops did not exceed, within 3 %.
  std::int64_t quantile_ns(double share) const;

 private:
  static constexpr int steps = 16;  // buckets per doubling
  std::array<std::int64_t, 48 * steps> buckets_{};
  std::int64_t count_ = 0, total_ = 0;
};

}  // namespace luaspy
