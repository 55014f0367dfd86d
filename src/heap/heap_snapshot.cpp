#include "heap/heap_snapshot.h"

#include <algorithm>

#include "luastate/heap_reader.h"

namespace luaspy {

bool is_close(std::int64_t difference, std::int64_t counter) {
  constexpr std::int64_t tolerated = 10'000, one_object = 256;  // bytes: of one that is being made
  const std::int64_t most = std::max(counter / tolerated, one_object);
  return -most <= difference && difference <= most;
}

bool adds_up(const HeapSnapshot& snapshot) {
  return std::ranges::all_of(snapshot.states, [&](const HeapSnapshot::State& state) {
    const std::unique_ptr<HeapReader> reader = state.lua->heap_reader(*snapshot.memory, state.G);
    if (reader == nullptr) return false;
    std::uint64_t sum = reader->other_bytes();
    const bool complete = reader->visit_objects(most_objects(snapshot.bytes),
                                                [&](const HeapObject& object) { sum += object.size; });
    const std::int64_t counter = state.lua->collector(*snapshot.memory, state.G).bytes;
    return complete && is_close(static_cast<std::int64_t>(sum - static_cast<std::uint64_t>(counter)), counter);
  });
}

}  // namespace luaspy
