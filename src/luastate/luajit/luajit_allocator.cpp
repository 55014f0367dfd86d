#include "luastate/luajit/luajit_allocator.h"

#include <algorithm>
#include <array>

#include "base/forward_reader.h"

namespace luaspy {
namespace {

// lj_alloc.c, struct malloc_state.
constexpr std::size_t m_smallmap = 0, m_topsize = 16, m_top = 32, m_smallbins = 56, m_seg = 840,
                      malloc_state_size = 864, small_bins = 32;
// Flags of malloc_chunk.head, and a head with both and the size of a word: a fencepost.
constexpr std::uint64_t prev_in_use = 1, in_use = 2, head_flags = 3, fencepost = 11;
constexpr std::uint64_t chunk_header = 16, smallest_chunk = 32, chunk_alignment = 8;
constexpr std::uint64_t top_foot = 64;       // TOP_FOOT_SIZE
constexpr std::uint64_t longest_tail = 64;   // of a full segment, from the first fencepost to its end
constexpr std::uint64_t direct_foot = 32;    // DIRECT_FOOT_PAD
constexpr std::uint64_t luajit_page = 4096;  // LJ_PAGESIZE (lj_arch.h), whatever the kernel's pages are
constexpr std::size_t most_segments = 1 << 18;

// init_bins(), insert_small_chunk(): where the bit in smallmap is set, the chunks at both ends of a
// bin's list refer back to it. Other bins refer to themselves or, as unlink_small_chunk() leaves
// them, to what was there last. One bin may be just changing.
bool are_bins(const Memory& memory, Address state, std::span<const std::byte> bytes) {
  const auto smallmap = load<std::uint32_t>(bytes, m_smallmap);
  int wrong = 0;
  for (std::size_t i = 0; i < small_bins; ++i) {
    const std::size_t at = m_smallbins + 2 * 8 * i;  // smallbin_at(): the bin's fd and bk are two words from here on
    const Address bin = state + at, fd = load<Address>(bytes, at + 16), bk = load<Address>(bytes, at + 24);
    const bool is_empty = (smallmap >> i & 1) == 0;
    const bool fits = plausible_pointer(fd) && plausible_pointer(bk) &&
                      (is_empty || (memory.get<Address>(fd + 24) == bin && memory.get<Address>(bk + 16) == bin));
    if (!fits) ++wrong;
  }
  return wrong <= 1;
}

// From chunk to chunk. False if it did not come to the segment's end.
bool walk_segment(const Memory& memory, const AddressRange& segment, Address top, std::uint64_t top_size,
                  std::vector<AddressRange>& free) {
  ForwardReader reader(memory);
  Address chunk = segment.start;
  while (segment.end - chunk >= chunk_header) {
    if (chunk == top) {
      free.push_back({top, top + top_size});
      return top_size == segment.end - top - top_foot;
    }
    std::uint64_t head = 0;
    if (!reader.get(chunk + 8, head)) return false;
    if (head == fencepost) return segment.end - chunk <= longest_tail;
    const std::uint64_t size = head & ~head_flags;
    if (size < smallest_chunk || size % chunk_alignment != 0 || size >= segment.end - chunk) return false;
    if ((head & in_use) == 0) free.push_back({chunk, chunk + size});
    chunk += size;
  }
  return false;
}

// direct_alloc(): prev_foot has only IS_DIRECT_BIT, the head says that the chunk is in use and the
// one before is not. Its end is a fencepost and a head of zero.
std::vector<AddressRange> mapped_chunks(const Memory& memory, const ResidentMemory& resident,
                                        std::span<const AddressRange> taken) {
  std::vector<AddressRange> chunks;
  for (const AddressRange& place : resident.anonymous_memory(taken)) {
    resident.visit_pages(place, [&](Address chunk) {
      std::uint64_t words[2];
      const bool read = memory.read(chunk, std::as_writable_bytes(std::span(words)));
      const std::uint64_t size = words[1] & ~head_flags, all = size + direct_foot;
      const bool may_be = read && words[0] == 1 && (words[1] & head_flags) == in_use && size < place.end - chunk &&
                          all % luajit_page == 0 && all <= place.end - chunk;
      const bool is_one = may_be && memory.get<std::uint64_t>(chunk + size + 8) == fencepost &&
                          memory.get<std::uint64_t>(chunk + size + 16) == std::uint64_t{0};
      if (is_one) chunks.push_back({chunk, chunk + all});
      return chunk + (is_one ? all : resident.page_bytes);
    });
  }
  return chunks;
}

std::vector<AddressRange> machine_code(const Memory& memory, const ResidentMemory& resident) {
  std::vector<AddressRange> areas;
  std::vector<Address> followed;  // the next area of each
  for (const ResidentMapping& one : resident.mappings) {
    const Mapping& mapping = one.mapping;
    if (!mapping.is_anonymous() || !mapping.readable || !mapping.executable) continue;
    // lj_mcode.c, mcode_alloc(): an area may be right below the one before, so that the kernel
    // joins them.
    for (Address area = mapping.start; area < mapping.end;) {
      struct Link {
        Address next;
        std::uint64_t size;
      };
      const std::optional<Link> link = memory.get<Link>(area);
      if (!link || link->size == 0 || link->size % luajit_page != 0 || link->size > mapping.end - area ||
          link->next % luajit_page != 0)
        break;
      areas.push_back({area, area + link->size});
      followed.push_back(link->next);
      area += link->size;
    }
  }
  // Areas form lists: an area whose next one is none of them is something else.
  std::vector<AddressRange> linked;
  for (std::size_t i = 0; i < areas.size(); ++i) {
    const bool is_linked = followed[i] == 0 || std::ranges::binary_search(areas, followed[i], {}, &AddressRange::start);
    if (is_linked) linked.push_back(areas[i]);
  }
  return linked;
}

}  // namespace

std::optional<AllocatorMemory> luajit_allocator(const Memory& memory, const LuajitLayout& layout,
                                                const AddressSpace& space, Address G) {
  if (layout.G_gc == no_field || layout.G_gc < 16) return std::nullopt;
  // lj_obj.h: in all releases allocf and allocd are right before the GCState.
  const Address state = memory.get<Address>(G + layout.G_gc - 8).value_or(0);
  std::array<std::byte, malloc_state_size> bytes;
  if (!plausible_pointer(state) || !memory.read(state, bytes) || !are_bins(memory, state, bytes)) return std::nullopt;
  const auto top = load<Address>(bytes, m_top);
  const auto top_size = load<std::uint64_t>(bytes, m_topsize);
  if (memory.get<std::uint64_t>(top + 8) != (top_size | prev_in_use)) return std::nullopt;

  AllocatorMemory found;
  struct Segment {
    Address base, size, next;
  };
  bool has_top = false, has_state = false;
  Address next = state + m_seg;
  while (next != 0) {
    const std::optional<Segment> segment = memory.get<Segment>(next);
    if (!segment || found.segments.size() == most_segments || segment->base % luajit_page != 0 ||
        segment->size % luajit_page != 0 || segment->size >= address_limit ||
        !space.is_writable({segment->base, segment->base + segment->size}))
      return std::nullopt;
    const AddressRange range{segment->base, segment->base + segment->size};
    has_top |= range.contains(top), has_state |= range.contains(state);
    found.segments.push_back(range);
    next = segment->next;
  }
  std::ranges::sort(found.segments, {}, &AddressRange::start);
  const auto overlaps = std::ranges::adjacent_find(
      found.segments, [](const AddressRange& lower, const AddressRange& upper) { return lower.end > upper.start; });
  if (!has_top || !has_state || overlaps != found.segments.end()) return std::nullopt;
  for (const AddressRange& segment : found.segments)
    found.whole &= walk_segment(memory, segment, top, top_size, found.free);
  if (!found.whole) found.free.clear();
  sort_and_join(found.free);
  sort_and_join(found.segments);
  return found;
}

SharedLuaMemory luajit_shared_memory(const Memory& memory, const ResidentMemory& resident,
                                     std::span<const AddressRange> taken) {
  SharedLuaMemory shared{mapped_chunks(memory, resident, taken), machine_code(memory, resident)};
  sort_and_join(shared.mapped_chunks), sort_and_join(shared.machine_code);
  return shared;
}

}  // namespace luaspy
