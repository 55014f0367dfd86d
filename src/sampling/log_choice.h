#pragma once
// Whether a log of a thread's switches (attach/switch_log.h) is worth what it costs: some µs for each switch. A thread
// that sleeps and wakes thousands of times a second is stopped instead, which costs it less.

#include <cstdint>

namespace luaspy {

class LogChoice {
 public:
  // Whether the log should be open. `runs`: how often the thread was given a CPU since the last call, `seconds` ago;
  // `ticks`: how many of these luaspy may have caused itself, each by taking the CPU away.
  bool wants_log(std::int64_t runs, std::int64_t ticks, double seconds) {
    // Far enough apart that a thread between the two does not open and close its log all the time.
    constexpr double too_many = 2000, few = 1000;  // a second
    const double rate = static_cast<double>(runs - ticks) / seconds;
    if (rate > too_many) wants_ = false;
    else if (rate < few) wants_ = true;
    return wants_;
  }

 private:
  bool wants_ = true;
};

}  // namespace luaspy
