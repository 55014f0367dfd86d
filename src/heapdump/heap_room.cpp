#include "heapdump/heap_room.h"

#include <fmt/format.h>

#include <algorithm>

#include "system/available_memory.h"

namespace luaspy {

// An analysis takes some 80 bytes for an object and 4 for a reference: with the smallest objects that
// programs have many of (LuaJIT's empty tables, 32-bit references) 1.8 times their size.
Result<void> check_room(std::uint64_t bytes, std::uint64_t heaps) {
  constexpr std::uint64_t times_heap = 2, others = 32 << 20;  // stacks of threads, texts
  const std::uint64_t wanted = bytes + times_heap * heaps + others;
  const std::optional<std::uint64_t> available = system::available_memory();
  if (!available || wanted <= *available) return {};
  return Error{Cause::internal,
               fmt::format("A copy of the heap and its analysis need some {} MB of memory, and luaspy can have {} MB.",
                           wanted / 1'000'000, *available / 1'000'000)};
}

std::uint64_t heap_bytes(const Memory& memory, const std::vector<HeapSnapshot::State>& states) {
  constexpr std::int64_t most = 1LL << 40;
  std::uint64_t bytes = 0;
  for (const HeapSnapshot::State& state : states)
    bytes += static_cast<std::uint64_t>(std::clamp<std::int64_t>(state.lua->collector(memory, state.G).bytes, 0, most));
  return bytes;
}

}  // namespace luaspy
