#pragma once
// A process of a test's own: its mappings and memory, with a heap of glibc's malloc, LuaJIT's
// allocator, and a thread's stack.

#include <array>
#include <vector>

#include "base/resident_memory.h"
#include "support/dice.h"

namespace luaspy {

class HeapImage : public Memory {
 public:
  bool read(Address address, std::span<std::byte> into) const override {
    ++reads;
    for (const Region& region : regions_) {
      if (address < region.start || address - region.start > region.bytes.size()) continue;
      const std::size_t at = address - region.start;
      if (region.bytes.size() - at < into.size()) return false;
      std::memcpy(into.data(), region.bytes.data() + at, into.size());
      return true;
    }
    return false;
  }
  mutable std::int64_t reads = 0;

  void map(Address start, std::size_t size, const char* path, std::uint64_t inode = 0, bool executable = false) {
    regions_.push_back({start, std::vector<std::byte>(size)});
    ResidentMapping one;
    one.mapping = {.start = start,
                   .end = start + size,
                   .readable = true,
                   .writable = !executable,
                   .executable = executable,
                   .inode = inode,
                   .path = path};
    one.rss = size, one.pages_known = true;
    resident.mappings.push_back(one);
    resident.pages.push_back({start, start + size});
    std::ranges::sort(resident.mappings, {}, [](const ResidentMapping& mapping) { return mapping.mapping.start; });
    sort_and_join(resident.pages);
  }
  ResidentMemory resident;

  void put(Address address, std::uint64_t word) {
    for (Region& region : regions_) {
      if (address < region.start || address - region.start >= region.bytes.size()) continue;
      std::memcpy(region.bytes.data() + (address - region.start), &word, sizeof word);
      words.push_back(address);
    }
  }
  std::vector<Address> words;  // that were put

  // Changes some of the words that were put, to values that may be believed.
  void damage(Dice& dice) {
    for (unsigned changes = 1 + dice(4); changes-- > 0;) {
      const Address at = words[dice(static_cast<unsigned>(words.size()))];
      const std::uint64_t values[] = {0,
                                      dice(64),
                                      dice(1 << 20),
                                      words[dice(static_cast<unsigned>(words.size()))] - 16 * dice(3),
                                      get<std::uint64_t>(at).value_or(0) ^ (std::uint64_t{1} << dice(48)),
                                      ~std::uint64_t{0} - dice(4096),
                                      at};
      put(at, values[dice(std::size(values))]);
      words.pop_back();
    }
  }

 private:
  struct Region {
    Address start;
    std::vector<std::byte> bytes;
  };
  std::vector<Region> regions_;
};

namespace glibc_image {
inline constexpr Address data = 0x7f00'0010'0000, arena = data + 0x400, heap = 0x5555'0000'0000,
                         alone = 0x7f00'0000'0000;
inline constexpr std::size_t data_size = 0x2000, heap_size = 0x21000, alone_size = 0x3000;
inline constexpr Address cache = heap, fast = heap + 0x290, cached = fast + 0x20, used = cached + 0x30,
                         in_bin = used + 0x1000, guard = in_bin + 0x500, top = guard + 0x20;
}  // namespace glibc_image

// As glibc 2.36 has it: | cache | in a fastbin | in the cache | used | in a bin | used | top |
// `alone_size`: of the chunk that was mapped alone, whole pages.
inline void add_glibc_heap(HeapImage& image, std::size_t alone_size = glibc_image::alone_size) {
  using namespace glibc_image;
  image.map(data, data_size, "/lib/libc.so.6", 7);
  image.map(heap, heap_size, "[heap]");
  image.map(alone, alone_size, "");
  const Address bins = arena + 112;
  for (Address bin = bins; bin < bins + 254 * 8; bin += 16) image.put(bin, bin - 16), image.put(bin + 8, bin - 16);
  image.put(arena + 96, top);
  image.put(arena + 112 + 254 * 8 + 16, arena);  // next
  image.put(bins + 16 * 5, in_bin), image.put(bins + 16 * 5 + 8, in_bin);
  image.put(in_bin + 16, bins + 16 * 5 - 16), image.put(in_bin + 24, bins + 16 * 5 - 16);
  image.put(arena + 16, fast);  // the fastbin of the smallest chunks
  // mp_: n_mmaps, n_mmaps_max, max_n_mmaps; mmapped_mem, max_mmapped_mem, sbrk_base
  image.put(data + 0x100, std::uint64_t{1} << 32), image.put(data + 0x108, 65536 | std::uint64_t{1} << 32);
  image.put(data + 0x118, alone_size), image.put(data + 0x120, alone_size), image.put(data + 0x128, heap);
  const std::pair<Address, std::uint64_t> heads[] = {{cache, 0x291},
                                                     {fast, 0x21},
                                                     {cached, 0x31},
                                                     {used, 0x1001},
                                                     {in_bin, 0x501},
                                                     {guard, 0x20},
                                                     {top, heap + heap_size - top + 1}};
  for (const auto& [chunk, head] : heads) image.put(chunk + 8, head);
  image.put(fast + 16, (fast + 16) >> 12);        // the end of a list (PROTECT_PTR)
  image.put(cache + 16, std::uint64_t{1} << 16);  // counts[1]
  image.put(cache + 16 + 128 + 8, cached + 16);   // entries[1]
  image.put(cached + 16, (cached + 16) >> 12);
  image.put(alone + 8, alone_size | 2);
}

namespace luajit_image {
inline constexpr Address segment = 0x4000'0000, state = segment + 16, chunks = segment + 0x380, G = segment + 0x1000,
                         alone = 0x4100'0000, code = 0x4200'0000;
inline constexpr std::size_t segment_size = 0x20000, alone_size = 0x2000, code_size = 0x10000;
inline constexpr std::uint64_t free_size = 0x80, tail = 0x10000;
inline constexpr Address free = segment + 0x2000, dv = free + free_size + 0x20, after = dv + 0x40, top = segment + tail;
}  // namespace luajit_image

// As lj_alloc.c has it: | malloc_state | used, with a global_State | in a bin | used | dv | used |
// top |
inline void add_luajit_heap(HeapImage& image) {
  using namespace luajit_image;
  image.map(segment, segment_size, "");
  image.map(alone, alone_size, "");
  image.map(code, 2 * code_size, "", 0, true);
  for (Address bin = state + 56; bin < state + 56 + 32 * 16; bin += 16)
    image.put(bin + 16, bin), image.put(bin + 24, bin);
  const Address bin = state + 56 + 16 * (free_size / 8);
  image.put(state, std::uint64_t{1} << (free_size / 8));
  image.put(bin + 16, free), image.put(bin + 24, free), image.put(free + 16, bin), image.put(free + 24, bin);
  image.put(state + 8, 0x40), image.put(state + 16, segment_size - tail - 64);  // dvsize, topsize
  image.put(state + 24, dv), image.put(state + 32, top);
  image.put(state + 840, segment), image.put(state + 848, segment_size), image.put(state + 856, 0);
  const std::pair<Address, std::uint64_t> heads[] = {{segment, 0x380 | 3},
                                                     {chunks, free - chunks + 3},
                                                     {free, free_size | 1},
                                                     {free + free_size, 0x20 | 2},
                                                     {dv, 0x40 | 1},
                                                     {after, top - after + 2},
                                                     {top, segment_size - tail - 64 + 1}};
  for (const auto& [chunk, head] : heads) image.put(chunk + 8, head);
  image.put(G, 0x1234), image.put(G + 8, state);  // allocf, allocd
  image.put(alone, 1), image.put(alone + 8, (alone_size - 32) | 2);
  image.put(alone + alone_size - 32 + 8, 11), image.put(alone + alone_size - 32 + 16, 0);
  image.put(code, code + code_size), image.put(code + 8, code_size);  // the newer area is below
  image.put(code + code_size, 0), image.put(code + code_size + 8, code_size);
}

}  // namespace luaspy
