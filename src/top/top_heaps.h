#pragma once
// The size of the Lua heaps that top watches, in the window and since the start. Its memory is
// bounded.

#include <optional>
#include <vector>

#include "base/sample.h"
#include "top/top_counts.h"

namespace luaspy {

class TopHeaps {
 public:
  // `window_ns`: as TopTable's.
  explicit TopHeaps(std::optional<std::int64_t> window_ns) : window_ns_(window_ns) {}

  // Times are since sampling began.
  void add(int pid, std::int64_t at_ns, const std::vector<HeapReading>& heaps);
  // The process is gone.
  void end(int pid, std::int64_t at_ns);
  // Nothing is recent now.
  void begin_window(std::int64_t now_ns) { begin(recent_, now_ns); }
  // Starts again with the sizes of now.
  void reset(std::int64_t now_ns);
  // nullopt: no heap was seen.
  std::optional<TopHeap> now(std::int64_t now_ns);

 private:
  void add(std::int64_t at_ns, const HeapChange& change);
  void begin(HeapTrack& track, std::int64_t now_ns) const;

  std::optional<std::int64_t> window_ns_;
  HeapChanges changes_;
  std::vector<std::int64_t> bytes_;  // by state
  std::int64_t total_ = 0;
  HeapTrack recent_, all_;  // of the total
};

}  // namespace luaspy
