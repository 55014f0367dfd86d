#pragma once
// The heap of one Lua, and what its collector was doing, as one stop has found them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/memory.h"

namespace luaspy {

// The steps of a collection, in their order. lgc.h and lj_gc.h divide them further (GCS…).
enum class CollectorPhase : std::uint8_t { pause, marking, atomic, sweeping, finalizing };
inline constexpr std::size_t collector_phase_count = 5;

constexpr std::string_view name(CollectorPhase phase) {
  constexpr std::array<std::string_view, collector_phase_count> names = {"pause", "marking", "atomic", "sweeping",
                                                                         "finalizing"};
  return names[static_cast<std::size_t>(phase)];
}

struct HeapReading {
  static constexpr std::int64_t most_bytes = std::int64_t{1} << 47;  // more makes no sense
  Address G = 0;                                                     // the global_State
  std::int64_t bytes = 0;  // in use: the value of collectgarbage("count"), times 1024; 0 to most_bytes
  CollectorPhase phase = CollectorPhase::pause;
  // Which of the two whites dead objects have, as bits of `marked`. The atomic step of each
  // collection exchanges the whites (lgc.c, lj_gc.c: atomic), and nothing else does.
  std::uint8_t dead_white = 0;
};

}  // namespace luaspy
