#include "profile/stop_times.h"

#include <algorithm>
#include <cmath>

namespace luaspy {

void StopTimes::add(std::int64_t ns) {
  const double doublings = std::log2(static_cast<double>(std::max<std::int64_t>(ns, 1)));
  const auto bucket = static_cast<std::size_t>(doublings * steps);
  ++buckets_[std::min(bucket, buckets_.size() - 1)];
  ++count_;
  total_ += ns;
}

StopTimes& StopTimes::operator+=(const StopTimes& other) {
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_, total_ += other.total_;
  return *this;
}

std::int64_t StopTimes::quantile_ns(double share) const {
  auto left = static_cast<std::int64_t>(share * static_cast<double>(count_));
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    left -= buckets_[bucket];
    if (left < 0) return static_cast<std::int64_t>(std::exp2((static_cast<double>(bucket) + 0.5) / steps));
  }
  return 0;
}

}  // namespace luaspy
