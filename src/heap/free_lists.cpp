#include "heap/free_lists.h"

#include <algorithm>
#include <array>
#include <optional>

#include "heap/chunk_walk.h"

namespace luaspy {
namespace {

using namespace glibc;

// The chunk's size if there may be a chunk at this address; 0 if not.
std::uint64_t size_of(const Memory& memory, Address chunk, std::span<const AddressRange> areas) {
  if (chunk % alignment != 0) return 0;
  const AddressRange* const area = find_range(areas, chunk);
  if (area == nullptr || area->end - chunk < smallest) return 0;
  const std::uint64_t size = memory.get<std::uint64_t>(chunk + 8).value_or(0) & ~flags;
  return size >= smallest && size <= area->end - chunk ? size : 0;
}

// The pointer in a free chunk to the next one, from 2.32 on mixed with its own address
// (PROTECT_PTR). 0: the list ends. nullopt: it is neither.
template <typename IsChunk>
std::optional<Address> next_in_list(const Memory& memory, Address field, const IsChunk& is_chunk) {
  const std::optional<std::uint64_t> stored = memory.get<std::uint64_t>(field);
  if (!stored) return std::nullopt;
  constexpr unsigned shift = 12;  // whatever the kernel's pages are
  const Address revealed = *stored ^ (field >> shift);
  for (const Address next : {revealed, *stored}) {
    if (next == 0 || is_chunk(next)) return next;
  }
  return std::nullopt;
}

// A form of struct tcache_perthread_struct: a number for each list, then the first entry of each.
// Entries are the program's addresses: 16 bytes above the chunks'.
struct CacheForm {
  std::uint64_t chunk_size;
  std::size_t lists, number_size;
  // From 2.42 on the number says how many chunks still fit, and is the same for all empty lists.
  bool says_room;
};
constexpr std::size_t small_lists = 64;  // one for each size; from 2.42 on the larger ones are mixed
constexpr CacheForm cache_forms[] = {{0x250, 64, 1, false}, {0x290, 64, 2, false}, {0x300, 76, 2, true}};
constexpr std::size_t most_in_list = 65535;  // tcache_count is a uint16_t (GLIBC_TUNABLES)

class Cache {
 public:
  Cache(const Memory& memory, const CacheForm& form, Address chunk, std::span<const AddressRange> areas,
        std::size_t& budget)
      : memory_(memory), form_(form), areas_(areas), budget_(budget), bytes_(form.chunk_size - 8) {
    // What malloc gives out ends with the next chunk's prev_size.
    if (!memory.read(chunk + header, bytes_)) bytes_.clear();
  }

  bool take_all(std::vector<AddressRange>& chunks) const {
    if (bytes_.empty()) return false;
    std::vector<AddressRange> found;
    std::optional<std::size_t> room;
    for (std::size_t list = 0; list < form_.lists; ++list) {
      const std::size_t said = number(list), before = found.size();
      if (!take(list, found)) return false;
      const std::size_t count = found.size() - before;
      if (!form_.says_room && count != said) return false;
      if (form_.says_room && room && *room != said + count) return false;
      room = said + count;
    }
    chunks.insert(chunks.end(), found.begin(), found.end());
    return !found.empty();
  }

 private:
  std::size_t number(std::size_t list) const {
    return form_.number_size == 1 ? load<std::uint8_t>(bytes_, list) : load<std::uint16_t>(bytes_, 2 * list);
  }

  bool take(std::size_t list, std::vector<AddressRange>& found) const {
    const auto size_at = [&](Address entry) {
      const std::uint64_t size = entry < header ? 0 : size_of(memory_, entry - header, areas_);
      const bool fits = list < small_lists ? size == smallest + list * alignment
                                           : size >= smallest + small_lists * alignment;
      return fits ? size : 0;
    };
    const Address first = load<Address>(bytes_, form_.lists * form_.number_size + 8 * list);
    if (first != 0 && size_at(first) == 0) return false;
    std::size_t count = 0;
    for (Address entry = first; entry != 0;) {
      if (++count > most_in_list || budget_ == 0) return false;
      --budget_;
      found.push_back({entry - header, entry - header + size_at(entry)});
      const std::optional<Address> next = next_in_list(memory_, entry, size_at);
      if (!next) return false;
      entry = *next;
    }
    return true;
  }

  const Memory& memory_;
  const CacheForm& form_;
  std::span<const AddressRange> areas_;
  std::size_t& budget_;
  std::vector<std::byte> bytes_;
};

}  // namespace

FreeList fastbin_chunks(const Memory& memory, Address fastbins, std::span<const AddressRange> areas, std::size_t most) {
  FreeList list;
  std::array<std::byte, 80> bytes;
  if (!memory.read(fastbins, bytes)) return {{}, false};
  for (std::size_t bin = 0; bin < 10; ++bin) {
    const std::uint64_t size = smallest + bin * alignment;
    const auto is_chunk = [&](Address chunk) { return size_of(memory, chunk, areas) == size; };
    Address chunk = load<Address>(bytes, 8 * bin);
    if (chunk != 0 && !is_chunk(chunk)) list.whole = false, chunk = 0;
    while (chunk != 0) {
      if (list.chunks.size() == most) return list.whole = false, list;
      list.chunks.push_back({chunk, chunk + size});
      const std::optional<Address> next = next_in_list(memory, chunk + header, is_chunk);
      list.whole &= next.has_value();
      chunk = next.value_or(0);
    }
  }
  return list;
}

bool cached_chunks(const Memory& memory, Address chunk, std::span<const AddressRange> areas, std::size_t& budget,
                   std::vector<AddressRange>& chunks) {
  const std::uint64_t size = memory.get<std::uint64_t>(chunk + 8).value_or(0) & ~flags;
  const auto form = std::ranges::find(cache_forms, size, &CacheForm::chunk_size);
  return form != std::end(cache_forms) && Cache(memory, *form, chunk, areas, budget).take_all(chunks);
}

}  // namespace luaspy
