// Locator's search of all of a target's memory, for states that no stack mentions.

#include <algorithm>

#include "luastate/locate.h"

namespace luaspy {

// A main thread and its global_State are allocated together, so the reference between them is short
// (StateFields::may_be_main). Such words are rare enough to examine each of them.
void Locator::visit_main_threads(const Memory& memory, const AddressSpace& space,
                                 const std::function<bool(const MainThread&)>& visit) const {
  constexpr std::size_t chunk = 1 << 20, most = 1 << 30, page = 4096, most_gaps = 4096;
  std::vector<std::byte> bytes(chunk);
  std::size_t read = 0, unreadable = 0;
  for (const Mapping& mapping : space.mappings()) {
    if (!mapping.writable || !mapping.readable || mapping.shared) continue;
    for (Address at = mapping.start, next; at < mapping.end && read < most; at = next) {
      auto part = std::span(bytes).first(std::min<Address>(chunk, mapping.end - at));
      const std::size_t readable = memory.read_some(at, part);
      // Continues after a page that cannot be read: thread stacks have guard pages, and may share a
      // mapping with a heap.
      next = at + part.size();
      if (readable < part.size() && ++unreadable <= most_gaps)
        next = std::min(next, (at + readable) / page * page + page);
      read += next - at;
      part = part.first(readable);
      for (std::size_t i = 0; i + 8 <= part.size(); i += 8) {
        for (const Lua* const row : rows_) {
          const StateFields& fields = row->state();
          const Address L = at + i - fields.G;
          const Address G = fields.short_reference ? load<std::uint32_t>(part, i) : load<Address>(part, i);
          if (!fields.may_be_main(L, G)) continue;
          const Lua* const lua = row->recognise_main(memory, L, G);
          if (lua != nullptr && !visit({L, G, lua})) return;
        }
      }
    }
  }
}

Address Locator::find_main_thread(const Memory& memory, const AddressSpace& space) const {
  Address found = 0;
  visit_main_threads(memory, space, [&](const MainThread& main) {
    found = main.L;
    return false;
  });
  return found;
}

// The target runs: memory that was being written may have looked like a state. It does not when it
// is looked at again.
void Locator::find_states(const Memory& memory, const AddressSpace& space) {
  constexpr std::size_t most_found = 4096;
  std::vector<MainThread> found;
  visit_main_threads(memory, space, [&](const MainThread& main) {
    if (!known_.contains(main.G)) found.push_back(main);
    return found.size() < most_found;
  });
  for (const MainThread& main : found) {
    if (known_.contains(main.G)) continue;  // already found with a better row
    if (main.lua->is_open(memory, main.L, main.G)) known_[main.G] = main.lua;
  }
}

}  // namespace luaspy
