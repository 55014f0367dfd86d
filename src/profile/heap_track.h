#pragma once
// The size of Lua heaps in the order of time, and how often their collectors went round. Between two
// values a heap keeps the size of the first, as far as is known: what does not run does not change.
//
// Collections are counted by the exchange of the two whites, of which there is one in each of them
// (HeapReading::dead_white), also in each minor one of the generational mode. Two exchanges between
// two looks undo each other, so what is counted is a lower bound: it is exact as long as there is a
// look between any two. One too many is counted if the program closes a Lua and opens another whose
// global_State has the same address: nothing tells these apart.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/heap_reading.h"

namespace luaspy {

// What has changed of one heap since the value before.
struct HeapChange {
  std::uint32_t state = 0;  // the number of the global_State, in the order in which they were first seen
  std::int64_t bytes = 0;   // in use now; 0: it is gone
  CollectorPhase phase = CollectorPhase::pause;
  bool collected = false;  // at least one collection
};

// Finds what has changed.
class HeapChanges {
 public:
  struct State {
    int pid = 0;
    Address G = 0;
  };
  static constexpr std::size_t most_states = 64;  // further ones are left out

  // nullopt: nothing has changed, or the state is left out.
  std::optional<HeapChange> observe(int pid, const HeapReading& reading);
  // The process has ended.
  std::vector<HeapChange> end(int pid);
  // By number.
  const std::vector<State>& states() const { return states_; }

 private:
  struct Known {
    std::uint32_t number = 0;
    HeapReading last;
  };
  std::map<std::pair<int, Address>, Known> known_;  // by pid and G
  std::vector<State> states_;
};

// What is said of a heap over a time.
struct HeapSummary {
  std::int64_t last = 0, least = 0, most = 0;  // bytes
  // Bytes per second: how much the least size of the second half of the time lies above that of the
  // first half. What a collector has not come to yet does not count as growth then, if it comes at
  // least once in each half. nullopt: the time is too short.
  std::optional<double> growth;
  // Collections per second, at least; nullopt: the time is too short.
  std::optional<double> cycles;
};

class HeapTrack {
 public:
  // Neighbouring values.
  struct Point {
    std::int64_t start_ns = 0, end_ns = 0;  // the first and the last of them, since the recording began
    std::int64_t least = 0, most = 0;       // bytes
    std::int64_t last = 0;
    CollectorPhase phase = CollectorPhase::pause;  // with the last
    std::int64_t cycles = 0;                       // counted up to the last, since the recording began
  };
  static constexpr std::size_t most_points = 2048;

  // Values come in the order of time. If there are too many, those of equal times are joined: of half
  // the number at least, so that what is kept depends only on the values.
  void add(std::int64_t at_ns, std::int64_t bytes, CollectorPhase phase, bool collected);
  const std::vector<Point>& points() const { return points_; }
  // The values for a picture. Of values that were joined these are the least, the most and the last.
  void for_each_value(const std::function<void(std::int64_t at_ns, std::int64_t bytes)>& see) const;
  // Forgets what was before, except for the value that was known then.
  void forget_before(std::int64_t ns);
  // From the first value up to `until_ns`. nullopt: there is no value.
  std::optional<HeapSummary> summary(std::int64_t until_ns) const;

 private:
  void join();

  std::vector<Point> points_;
  std::int64_t width_ns_ = 0;       // of the times of which values are joined; 0: none are
  std::int64_t cycles_before_ = 0;  // counted before the first point
};

// All heaps of a recording.
class HeapTracks {
 public:
  struct Of {
    HeapChanges::State state;
    HeapTrack track;
  };
  // The number of the state, which the changes have.
  std::uint32_t add_state(const HeapChanges::State& state);
  void add(std::int64_t at_ns, const HeapChange& change);

  const std::vector<Of>& states() const { return states_; }
  bool empty() const { return states_.empty(); }
  // Of all states together, each with the last size that it was seen with. The phase is that of the
  // state that has changed last.
  const HeapTrack& total() const { return total_; }

 private:
  std::vector<Of> states_;
  HeapTrack total_;
  std::int64_t total_bytes_ = 0;
};

}  // namespace luaspy
