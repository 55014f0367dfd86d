#include "heap/glibc_arenas.h"

#include <algorithm>
#include <array>

namespace luaspy {
namespace {

constexpr std::size_t word = 8, bin_count = 127, bin_words = 2 * bin_count;  // NBINS - 1: there is no bin 0
constexpr std::size_t most_data = 32 << 20;                                  // bytes of one mapping, and of all
constexpr std::size_t most_arenas = 4096;  // M_ARENA_MAX is 8 for each CPU unless it was set
constexpr int most_torn_bins = 2;

// From the first bin on. malloc_state after bins: binmap (16 bytes), next, next_free,
// attached_threads, system_mem, max_system_mem.
constexpr std::uint64_t top_below_bins = 16, next_above_bins = bin_words * word + 16,
                        end_above_bins = next_above_bins + 40;

// From the start of malloc_state to `top`: mutex, flags, have_fastchunks, ten fastbins; before 2.27
// without have_fastchunks; from 2.43 on without both.
struct ArenaForm {
  std::uint64_t top, fastbins;  // fastbins 0: none
};
constexpr ArenaForm arena_forms[] = {{96, 16}, {8, 0}, {88, 8}};

// A writable mapping of a file: what was initialised data there.
struct Data {
  std::uint64_t page_bytes;
  Address start;
  std::vector<std::uint64_t> words{};
  Address address(std::size_t index) const { return start + index * word; }
};

bool is_empty_bin(const Data& data, std::size_t index) {
  const Address self = data.address(index) - 16;
  return data.words[index] == self && data.words[index + 1] == self;
}

// The chunks at both ends of a bin's list refer back to it (fd is 16 bytes from a chunk's start, bk
// 24).
bool is_linked_bin(const Memory& memory, const Data& data, std::size_t index) {
  const Address self = data.address(index) - 16, first = data.words[index], last = data.words[index + 1];
  return plausible_pointer(first, 16) && plausible_pointer(last, 16) && memory.get<Address>(first + 24) == self &&
         memory.get<Address>(last + 16) == self;
}

bool are_bins(const Memory& memory, const Data& data, std::size_t first) {
  int torn = 0;
  for (std::size_t bin = 0; bin < bin_count; ++bin) {
    const std::size_t index = first + 2 * bin;
    if (!is_empty_bin(data, index) && !is_linked_bin(memory, data, index) && ++torn > most_torn_bins) return false;
  }
  return true;
}

GlibcArena arena_at(const Memory& memory, const ArenaForm& form, Address address) {
  GlibcArena arena;
  arena.address = address;
  const Address top = memory.get<Address>(address + form.top).value_or(0);
  const Address bins = address + form.top + top_below_bins;
  arena.top = plausible_pointer(top, 16) && top != bins - 16 ? top : 0;  // initial_top: the unsorted bin itself
  arena.fastbins = form.fastbins != 0 ? address + form.fastbins : 0;
  // arena.c, _int_new_arena(): aligned so that what malloc returns is.
  arena.first = (bins + end_above_bins + 15) / 16 * 16;
  return arena;
}

// Follows `next` from the main arena until that comes again.
bool follow_ring(const Memory& memory, const ArenaForm& form, Address main, std::vector<GlibcArena>& arenas) {
  arenas.clear();
  Address arena = main;
  do {
    if (arenas.size() == most_arenas || !plausible_pointer(arena)) return false;
    arenas.push_back(arena_at(memory, form, arena));
    arena = memory.get<Address>(arena + form.top + top_below_bins + next_above_bins).value_or(0);
  } while (arena != main);
  return true;
}

// Is this word sbrk_base? The two words before it are mmapped_mem and max_mmapped_mem. Before these
// are four numbers of 32 bits: n_mmaps, n_mmaps_max, max_n_mmaps, no_dyn_threshold. From 2.35 on
// hp_flags comes before them, and so they end 32 bits earlier.
bool parse_parameters(const Data& data, std::size_t index, const AddressRange& heap, GlibcMalloc& found) {
  constexpr std::size_t words_before = 5;
  if (!heap.contains(data.words[index]) || index < words_before) return false;
  const std::uint64_t mapped = data.words[index - 2], most_mapped = data.words[index - 1];
  if (mapped % data.page_bytes != 0 || most_mapped % data.page_bytes != 0 || mapped > most_mapped ||
      most_mapped >= address_limit)
    return false;
  std::array<std::uint32_t, 2 * words_before> halves;
  std::memcpy(halves.data(), &data.words[index - words_before], sizeof halves);
  for (const std::size_t at : {std::size_t{1}, std::size_t{2}}) {
    const std::uint32_t chunks = halves[at], limit = halves[at + 1], most_chunks = halves[at + 2];
    const bool fits = chunks <= most_chunks && most_chunks <= limit && limit != 0 && limit <= 1u << 30 &&
                      (chunks == 0) == (mapped == 0) && (most_chunks == 0) == (most_mapped == 0);
    if (!fits) continue;
    found.sbrk_base = data.words[index];
    found.has_counts = true;
    found.mmapped_chunks = chunks, found.mmapped_bytes = mapped;
    return true;
  }
  return false;
}

// The parts of it that are resident: reading others would make them so. Those that malloc has
// written to are. The others are left as zeros.
bool read_data(const Memory& memory, const ResidentMemory& resident, const AddressRange& mapping, Data& data) {
  data.words.assign(mapping.size() / word, 0);
  const auto bytes = std::as_writable_bytes(std::span(data.words));
  for (const AddressRange& part : common_parts({&mapping, 1}, resident.pages)) {
    if (!memory.read(part.start, bytes.subspan(part.start - mapping.start, part.size()))) return false;
  }
  return true;
}

bool find_in(const Memory& memory, const Data& data, std::span<const ResidentMapping> mappings, GlibcMalloc& found) {
  const std::vector<std::uint64_t>& words = data.words;
  for (std::size_t last = bin_words - 2; last + 8 < words.size(); ++last) {
    // Bin 127 is never used (malloc.c, largebin_index), so it is empty, and the last one.
    if (!is_empty_bin(data, last) || is_empty_bin(data, last + 2)) continue;
    const std::size_t first = last - (bin_words - 2);
    if (!are_bins(memory, data, first)) continue;
    const Address top = data.address(first) - top_below_bins;
    const bool complete = std::ranges::any_of(
        arena_forms, [&](const ArenaForm& form) { return follow_ring(memory, form, top - form.top, found.arenas); });
    if (!complete) continue;
    // The heap begins where the kernel has put it, or where the first sbrk(2) after others has.
    for (const ResidentMapping& mapping : mappings) {
      if (mapping.mapping.path != "[heap]") continue;
      // Without randomisation it begins within the last page of .bss.
      const AddressRange heap{mapping.mapping.start - data.page_bytes, mapping.mapping.end};
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (parse_parameters(data, i, heap, found)) return true;
      }
      found.sbrk_base = mapping.mapping.start;
      break;
    }
    return true;
  }
  return false;
}

}  // namespace

std::optional<GlibcMalloc> find_glibc_malloc(const Memory& memory, const ResidentMemory& resident) {
  std::size_t searched = 0;
  std::optional<GlibcMalloc> unused;  // of a second libc in the process, say
  for (const ResidentMapping& one : resident.mappings) {
    const Mapping& mapping = one.mapping;
    if (mapping.inode == 0 || !mapping.writable || !mapping.readable || mapping.shared || one.rss == 0) continue;
    const std::uint64_t size = mapping.end - mapping.start;
    if (size > most_data - searched) continue;
    searched += size;
    Data data{resident.page_bytes, mapping.start};
    GlibcMalloc found;
    if (!read_data(memory, resident, {mapping.start, mapping.end}, data)) continue;
    if (!find_in(memory, data, resident.mappings, found)) continue;
    if (std::ranges::any_of(found.arenas, [](const GlibcArena& arena) { return arena.top != 0; })) return found;
    unused = std::move(found);
  }
  return unused;
}

}  // namespace luaspy
