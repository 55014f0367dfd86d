#pragma once
// How much all Luas allocate, and how much of it passes their gates (byte_gate.h). Two reads of a heap's counter
// right after one another show where to trap, and two that are apart how much it is (growth_probe.h); the growth of
// a heap between two probes, and trapped calls, show both.

#include <algorithm>
#include <cstdint>

namespace luaspy {

class AllocatedBytes {
 public:
  // What both kinds of reads have shown, bytes.
  void look(double apart, double at_once) {
    apart_ += apart, at_once_ += at_once;
    add(apart, at_once);
  }
  // So much was allocated, and so much passes the gates.
  void add(double bytes, double passes) { all_ += bytes, passed_ += passes; }

  double all() const { return all_; }
  // How many bytes one byte at the gates stands for, `ns` after the beginning. The first looks vary too much to
  // tell: until some seconds have passed, it stays near one.
  double a_pass(std::int64_t ns) const {
    const double of_a_second = all_ * 1e9 / static_cast<double>(std::max<std::int64_t>(ns, 1));
    return of_a_second > 0 ? (apart_ + of_a_second) / (at_once_ + of_a_second) : 1;
  }
  // Bytes a second at the gates, lately; `ns`: since it was asked last.
  double rate(std::int64_t ns) {
    constexpr double weight = 0.2;  // of the newest
    const double rate = (passed_ - passed_then_) * 1e9 / static_cast<double>(std::max<std::int64_t>(ns, 1));
    passed_then_ = passed_;
    return rate_ = rate_ == 0 ? rate : rate_ + weight * (rate - rate_);
  }

 private:
  double all_ = 0, passed_ = 0, passed_then_ = 0;
  double apart_ = 0, at_once_ = 0;
  double rate_ = 0;
};

}  // namespace luaspy
