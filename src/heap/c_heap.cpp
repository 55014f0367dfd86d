#include "heap/c_heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/page_cache.h"
#include "heap/chunk_walk.h"
#include "heap/free_lists.h"
#include "heap/glibc_arenas.h"

namespace luaspy {
namespace {

constexpr Address heap_span = 64 << 20;         // arena.c, HEAP_MAX_SIZE: also the alignment of a heap
constexpr std::size_t most_followed = 1 << 22;  // chunks in caches, also in vain
constexpr std::size_t most_doubts = 20;

class Reading {
 public:
  Reading(const Memory& memory, const ResidentMemory& resident, CHeap& heap)
      : memory_(memory), cached_(memory), resident_(resident), space_(resident.address_space()), heap_(heap) {}

  void main_arena(const GlibcMalloc& malloc) {
    const GlibcArena& arena = malloc.arenas.front();
    if (arena.top == 0) return;
    const std::uint64_t top_size = memory_.get<std::uint64_t>(arena.top + 8).value_or(0) & ~glibc::flags;
    const Address first = (malloc.sbrk_base + glibc::alignment - 1) / glibc::alignment * glibc::alignment;
    if (malloc.sbrk_base != 0 && arena.top - first < address_limit && top_size < address_limit &&
        space_.is_writable({first, arena.top + top_size}))
      return walk({malloc.sbrk_base, arena.top + top_size}, first, arena.top);
    for (const ResidentMapping& one : resident_.mappings) {
      if (one.mapping.path == "[heap]") leave({one.mapping.start, one.mapping.end}, "its bounds do not fit");
    }
  }

  // arena.c, heap_info: ar_ptr, prev, size. The last heap of an arena has its top, and the first
  // one its malloc_state.
  void further_arena(const GlibcArena& arena) {
    const Address first_heap = arena.address / heap_span * heap_span;
    Address heap = arena.top / heap_span * heap_span, top = arena.top;
    while (heap != 0) {
      const auto prev = memory_.get<Address>(heap + 8), size = memory_.get<Address>(heap + 16);
      const bool fits = memory_.get<Address>(heap) == arena.address && prev && size &&
                        *size % resident_.page_bytes == 0 && *size <= heap_span &&
                        (heap == first_heap) == (*prev == 0) && space_.is_writable({heap, heap + *size}) &&
                        (top == 0 || top - heap < *size) &&
                        std::ranges::find(heap_.areas, heap, &AddressRange::start) == heap_.areas.end();
      if (!fits) return doubt(fmt::format("The arena at {:#x} could not be read.", arena.address));
      const Address info_size = arena.address - first_heap;
      walk({heap, heap + *size}, heap == first_heap ? arena.first : heap + info_size, top);
      heap = *prev, top = 0;
    }
  }

  // Afterwards `areas` and `free` are ascending.
  void lists(const GlibcMalloc& malloc) {
    sort_and_join(heap_.areas);
    const std::size_t most = total_bytes(heap_.areas) / glibc::smallest;  // a longer list goes in a circle
    std::vector<AddressRange> fast, cached;
    for (const GlibcArena& arena : malloc.arenas) {
      if (arena.fastbins == 0 || arena.top == 0) continue;
      FreeList list = fastbin_chunks(cached_, arena.fastbins, heap_.areas, most - fast.size());
      if (!list.whole) doubt(fmt::format("A fastbin of the arena at {:#x} could not be followed.", arena.address));
      fast.insert(fast.end(), list.chunks.begin(), list.chunks.end());
    }
    std::size_t budget = most_followed;
    for (const Address chunk : perhaps_cache_) (void)cached_chunks(cached_, chunk, heap_.areas, budget, cached);
    if (budget == 0) doubt("Not all caches of threads were read.");
    heap_.fastbin_bytes = add_free(std::move(fast));
    heap_.cached_bytes = add_free(std::move(cached));
  }

  // malloc.c, sysmalloc_mmap: a chunk at the start of a page, whose size is that of the mapping,
  // from 2.43 on without a header. The kernel may have joined the mapping with its neighbours.
  void mapped_chunks(const GlibcMalloc& malloc, std::span<const AddressRange> taken) {
    if (malloc.has_counts && malloc.mmapped_chunks == 0) return;
    std::vector<AddressRange> others(heap_.areas);
    others.insert(others.end(), taken.begin(), taken.end());
    sort_and_join(others);
    for (const AddressRange& place : resident_.anonymous_memory(others)) scan(malloc, place);
    if (malloc.has_counts &&
        (heap_.mapped_chunks != malloc.mmapped_chunks || heap_.mapped_bytes != malloc.mmapped_bytes))
      doubt(fmt::format("malloc has mapped {} chunks alone, of {} bytes; {} were found, of {} bytes.",
                        malloc.mmapped_chunks, malloc.mmapped_bytes, heap_.mapped_chunks, heap_.mapped_bytes));
    sort_and_join(heap_.areas);
  }

 private:
  void doubt(std::string sentence) {
    if (heap_.doubts.size() < most_doubts) heap_.doubts.push_back(std::move(sentence));
  }

  void leave(const AddressRange& area, const char* why) {
    heap_.areas.push_back(area);
    heap_.unknown.push_back(area);
    doubt(fmt::format("The C heap from {:#x} to {:#x} could not be walked: {}.", area.start, area.end, why));
  }

  void walk(const AddressRange& area, Address first, Address top) {
    const ChunkWalk chunks = walk_chunks(memory_, first, top, area.end);
    if (chunks.why_not != nullptr) return leave(area, chunks.why_not);
    heap_.areas.push_back(area);
    heap_.free.insert(heap_.free.end(), chunks.free.begin(), chunks.free.end());
    perhaps_cache_.insert(perhaps_cache_.end(), chunks.perhaps_cache.begin(), chunks.perhaps_cache.end());
  }

  // Lists are followed only after the walks; where a walk failed, nothing is known to be free.
  // Returns how many bytes were added.
  std::uint64_t add_free(std::vector<AddressRange> chunks) {
    const std::uint64_t twice = sort_and_join(chunks);
    std::ranges::sort(heap_.unknown, {}, &AddressRange::start);
    chunks = without(chunks, heap_.unknown);
    sort_and_join(heap_.free);
    if (twice != 0 || common_bytes(chunks, heap_.free) != 0) doubt("Some chunks are in two lists of free ones.");
    chunks = without(chunks, heap_.free);
    heap_.free.insert(heap_.free.end(), chunks.begin(), chunks.end());
    sort_and_join(heap_.free);
    return total_bytes(chunks);
  }

  void scan(const GlibcMalloc& malloc, const AddressRange& place) {
    Address from = place.start;  // the end of the last one found
    resident_.visit_pages(place, [&](Address page) -> Address {
      if (malloc.has_counts && heap_.mapped_chunks == malloc.mmapped_chunks) return 0;
      const AddressRange area = mapped_chunk_in(page, {from, place.end});
      if (area.size() == 0) return page + resident_.page_bytes;
      heap_.areas.push_back(area);
      ++heap_.mapped_chunks, heap_.mapped_bytes += area.size();
      return from = area.end;
    });
  }

  // The mapping of a chunk that begins in this page: at its start, or where aligned_alloc(3) has
  // moved it. prev_size says how far that is from the start of the mapping. Empty if there is none.
  AddressRange mapped_chunk_in(Address page, const AddressRange& bounds) {
    const std::uint64_t page_bytes = resident_.page_bytes;
    std::vector<std::uint64_t>& words = words_of_page_;
    words.resize(page_bytes / 8);
    if (!memory_.read(page, std::as_writable_bytes(std::span(words)))) return {};
    for (std::uint64_t alignment = glibc::alignment; alignment <= page_bytes; alignment *= 2) {
      const std::size_t offset = alignment - glibc::header;
      const std::uint64_t moved = words[offset / 8], head = words[offset / 8 + 1];
      const bool fits = (head & glibc::flags) == glibc::is_mmapped && head < address_limit && moved < address_limit &&
                        (alignment < page_bytes ? moved == offset : moved % page_bytes == offset);
      const Address start = page + offset - moved;
      if (!fits || start < bounds.start || start > page) continue;
      std::uint64_t size = moved + (head & ~glibc::flags);
      if (size % page_bytes != 0) size += glibc::header;
      if (size > moved + glibc::header && size % page_bytes == 0 && size <= bounds.end - start)
        return {start, start + size};
    }
    return {};
  }

  const Memory& memory_;
  PageCache cached_;
  const ResidentMemory& resident_;
  AddressSpace space_;
  CHeap& heap_;
  std::vector<Address> perhaps_cache_;
  std::vector<std::uint64_t> words_of_page_;
};

}  // namespace

CHeap read_c_heap(const Memory& memory, const ResidentMemory& resident, std::span<const AddressRange> taken) {
  CHeap heap;
  const std::optional<GlibcMalloc> malloc = find_glibc_malloc(memory, resident);
  if (!malloc) return heap;
  heap.found = true;
  heap.arenas = malloc->arenas.size();
  Reading reading(memory, resident, heap);
  reading.main_arena(*malloc);
  for (std::size_t i = 1; i < malloc->arenas.size(); ++i) {
    if (malloc->arenas[i].top != 0) reading.further_arena(malloc->arenas[i]);
  }
  reading.lists(*malloc);
  reading.mapped_chunks(*malloc, taken);
  return heap;
}

}  // namespace luaspy
