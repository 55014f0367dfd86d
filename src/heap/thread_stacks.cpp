#include "heap/thread_stacks.h"

#include <algorithm>
#include <array>
#include <optional>

namespace luaspy {
namespace {

constexpr std::size_t descriptor_alignment = 64;      // of struct pthread (TCB_ALIGNMENT), bytes
constexpr std::size_t descriptor_words = 0x1000 / 8;  // more than sizeof (struct pthread): 2304 bytes in 2.36
constexpr std::uint64_t most_above = 64 << 10;        // from the descriptor to the end of the stack
constexpr std::uint64_t most_searched = 64 << 20;     // bytes

// The stack whose descriptor is at this address, which refers to itself. The first thread's has
// none.
std::optional<AddressRange> described_stack(const Memory& memory, std::uint64_t page_bytes, Address descriptor) {
  std::array<std::uint64_t, descriptor_words> words;
  const std::size_t size = memory.read_some(descriptor, std::as_writable_bytes(std::span(words)));
  for (std::size_t i = 3; (i + 2) * 8 <= size; ++i) {
    const std::uint64_t start = words[i], length = words[i + 1];
    if (start == 0 || start % page_bytes != 0 || length == 0 || length % page_bytes != 0) continue;
    if (start >= descriptor || descriptor - start >= length || start + length - descriptor > most_above) continue;
    return AddressRange{start, start + length};
  }
  return std::nullopt;
}

// All stacks whose descriptors begin in this page. `words`: as many as a page has.
void search_page(const Memory& memory, Address page, std::span<std::uint64_t> words,
                 std::vector<AddressRange>& stacks) {
  if (!memory.read(page, std::as_writable_bytes(words))) return;
  for (std::size_t i = 0; i + 2 < words.size(); i += descriptor_alignment / 8) {
    const Address descriptor = page + 8 * i;
    if (words[i] != descriptor || words[i + 2] != descriptor) continue;
    if (const std::optional<AddressRange> stack = described_stack(memory, 8 * words.size(), descriptor))
      stacks.push_back(*stack);
  }
}

}  // namespace

std::vector<AddressRange> find_thread_stacks(const Memory& memory, const ResidentMemory& resident,
                                             std::span<const Address> stack_pointers,
                                             std::span<const AddressRange> taken) {
  std::vector<AddressRange> stacks;
  for (const ResidentMapping& one : resident.mappings) {
    if (one.mapping.path == "[stack]") stacks.push_back({one.mapping.start, one.mapping.end});
  }
  const std::vector<AddressRange> places = resident.anonymous_memory(taken);
  std::vector<std::uint64_t> words(resident.page_bytes / 8);
  std::uint64_t left = most_searched / resident.page_bytes;
  for (const AddressRange& place : places) {
    resident.visit_pages(place, [&](Address page) -> Address {
      if (left == 0) return 0;
      --left;
      search_page(memory, page, words, stacks);
      return page + resident.page_bytes;
    });
  }
  sort_and_join(stacks);
  for (const Address sp : stack_pointers) {
    const AddressRange* const place = find_range(places, sp);
    if (place == nullptr || find_range(stacks, sp) != nullptr) continue;
    stacks.push_back(*place);
    sort_and_join(stacks);
  }
  return stacks;
}

}  // namespace luaspy
