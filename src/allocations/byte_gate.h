#pragma once
// Decides when to trap allocations, so that this comes as often as bytes are allocated, and not as
// often as time passes: a program that allocates for a tenth of its time has all its allocations
// there.
//
// The bytes of the program pass the gate in the order of time. Places in that stream are chosen at
// random, one in `interval` bytes on average, at independent distances (a Poisson process), so a
// program whose allocations repeat cannot be in step with them.

#include <cstdint>
#include <random>

namespace luaspy {

class ByteGate {
 public:
  explicit ByteGate(std::uint64_t seed) : random_(seed) {}

  // Bytes. Before the first call, the gate is closed.
  void set_interval(double bytes) { interval_ = bytes; }
  double interval() const { return interval_; }
  bool is_open() const { return interval_ > 0; }

  // So many bytes pass the open gate. Returns how many chosen places are among them.
  int pass(double bytes) {
    int chosen = 0;
    left_ -= bytes / interval_;
    for (; left_ < 0; ++chosen) left_ = chosen < most_at_once ? left_ + distance_(random_) : distance_(random_);
    return chosen;
  }

 private:
  static constexpr int most_at_once = 1000;
  std::mt19937_64 random_;
  std::exponential_distribution<double> distance_;  // in intervals
  double interval_ = 0;
  double left_ = distance_(random_);  // until the next chosen place, in intervals
};

}  // namespace luaspy
