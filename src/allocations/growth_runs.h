#pragma once
// How much a Lua allocates between two pauses, by its heap's size at each probe. A look of 2 µs
// (growth_probe.h) shows what a Lua allocates that does so for a while. One that wakes for some µs is hardly
// ever met, but what its heap has grown by since the probe before is all that it has allocated: the
// collector frees little in so short a time.

#include <algorithm>
#include <cstdint>

namespace luaspy {

class GrowthRuns {
 public:
  // At a probe: by how much the heap has changed since the one before.
  void add(std::int64_t bytes) {
    if (bytes != 0) {
      run_ += static_cast<double>(std::max<std::int64_t>(bytes, 0));
      ++probes_;
      return;
    }
    if (run_ > 0) usual_ = usual_ > 0 ? usual_ + weight * (std::min(run_, most * usual_) - usual_) : run_;
    if (run_ > 0) usual_probes_ += weight * (std::min(probes_, most * most_probes) - usual_probes_);
    run_ = probes_ = 0;
  }
  // What it usually allocates at a time, bytes; 0: not known.
  double usual() const { return usual_; }
  // Whether it usually pauses so soon that it is hardly ever met.
  bool are_short() const { return usual_ > 0 && usual_probes_ <= most_probes && probes_ <= most * most_probes; }

 private:
  // A probe that comes late sees several runs as one.
  static constexpr double weight = 0.2, most = 4;  // of the newest; times what is usual
  static constexpr double most_probes = 3;         // of a short run
  double run_ = 0, usual_ = 0;                     // bytes
  double probes_ = 0, usual_probes_ = 1;           // that have met it
};

}  // namespace luaspy
