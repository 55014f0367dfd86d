#pragma once
// What the garbage collector costs, by who allocates. The collector has work because something was
// allocated: of its time, each site causes the share that it has of all bytes.

#include <cstdint>
#include <vector>

#include "profile/function_table.h"

namespace luaspy {

struct CollectorCost {
  // All in %. `bytes`: of all that was allocated. `time`: of all samples of time, the collector's that
  // a function causes. Own, and with what it calls.
  struct Row {
    std::uint32_t function = 0;
    double own_bytes = 0, total_bytes = 0, own_time = 0, total_time = 0;
  };
  FunctionTable functions;
  std::vector<Row> rows;       // what causes the most itself first
  double collecting = 0;       // % of the samples of time: the sum of all own_time, and
  double without_site = 0;     // of processes of which no allocation was sampled
  std::int64_t looks = 0;      // samples of time
  std::int64_t collected = 0;  // of these
};

// `time` and `bytes` are of one recording. A process causes the work of its own collector only.
CollectorCost collector_cost(const Profile& time, const Profile& bytes, By by, Mode mode = Mode::all);

}  // namespace luaspy
