#include "heap/chunk_walk.h"

#include <algorithm>

#include "base/forward_reader.h"

namespace luaspy {

ChunkWalk walk_chunks(const Memory& memory, Address first, Address top, Address end) {
  constexpr std::size_t most_caches = 1 << 20;
  using namespace glibc;
  ChunkWalk walk;
  ForwardReader reader(memory);
  const auto give_up = [&](const char* why) {
    walk.why_not = why;
    return walk;
  };
  const auto size_at = [&](Address chunk, std::uint64_t& size) { return reader.get(chunk + 8, size); };
  if (first % alignment != 0 || first > end || end - first < header) return give_up("its bounds do not fit");
  Address chunk = first;
  std::uint64_t head = 0;
  if (!size_at(chunk, head)) return give_up("a chunk cannot be read");
  while (chunk != top) {
    const std::uint64_t size = head & ~flags;
    if (top == 0 && size == 0 && end - chunk == header) return walk;  // the second fencepost
    const bool is_fencepost = top == 0 && size == header && end - chunk == 2 * header;
    if ((size < smallest && !is_fencepost) || size % alignment != 0 || size > end - chunk - header)
      return give_up("a chunk has an impossible size");
    std::uint64_t next_head = 0;
    if (!size_at(chunk + size, next_head)) return give_up("a chunk cannot be read");
    ++walk.chunks;
    if ((next_head & prev_in_use) == 0) {
      if (!walk.free.empty() && walk.free.back().end == chunk) walk.free.back().end += size;
      else walk.free.push_back({chunk, chunk + size});
    } else if (std::ranges::find(cache_sizes, size) != std::end(cache_sizes) &&
               walk.perhaps_cache.size() < most_caches) {
      walk.perhaps_cache.push_back(chunk);
    }
    chunk += size;
    head = next_head;
    if (top != 0 && chunk > top) return give_up("the walk does not come to the top chunk");
  }
  if ((head & ~flags) != end - top) return give_up("the top chunk has an impossible size");
  walk.free.push_back({top, end});
  return walk;
}

}  // namespace luaspy
