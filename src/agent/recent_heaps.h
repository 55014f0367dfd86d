#pragma once
// The Lua heaps of a process, as its samples find them: without a stop of their own.

#include <chrono>
#include <cstdint>
#include <map>
#include <span>

#include "base/heap_reading.h"
#include "system/calls.h"

namespace luaspy {

class RecentHeaps {
 public:
  using Time = system::Clock::time_point;
  static constexpr std::chrono::minutes remembered{1};

  void add(std::span<const HeapReading> heaps, Time at) {
    for (const HeapReading& heap : heaps) {
      Seen& seen = heaps_[heap.G];
      collections_ += seen.dead_white != 0 && heap.dead_white != seen.dead_white;
      seen = {heap.bytes, heap.dead_white, at};
    }
    constexpr std::size_t most = 1000;  // of a program that makes new ones all the time
    if (heaps_.size() > most) (void)bytes(at);
  }
  // Of those Luas together that have run lately. The others are forgotten: they may be closed.
  std::int64_t bytes(Time now) {
    std::erase_if(heaps_, [&](const auto& each) { return now - each.second.at > remembered; });
    std::int64_t bytes = 0;
    for (const auto& [G, seen] : heaps_) bytes += seen.bytes;
    return bytes;
  }
  // How often their collectors have gone round, at least: two rounds between two samples are not seen.
  std::int64_t collections() const { return collections_; }

 private:
  struct Seen {
    std::int64_t bytes = 0;
    std::uint8_t dead_white = 0;  // HeapReading; 0: not seen yet
    Time at{};
  };
  std::map<Address, Seen> heaps_;  // by global_State
  std::int64_t collections_ = 0;
};

}  // namespace luaspy
