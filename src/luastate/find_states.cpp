// Locator's search of all of a target's memory, for states that no stack mentions.

#include <algorithm>

#include "luastate/locate.h"

namespace luaspy {
namespace {

// A piece of memory that was read, and the memory itself for everything else. A state that is looked
// for is mostly in the piece, as a whole.
class Piece : public Memory {
 public:
  Piece(const Memory& memory, Address start, std::span<const std::byte> bytes)
      : memory_(memory), start_(start), bytes_(bytes) {}
  bool read(Address address, std::span<std::byte> into) const override {
    const Address offset = address - start_;
    if (offset >= bytes_.size() || bytes_.size() - offset < into.size()) return memory_.read(address, into);
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return true;
  }

 private:
  const Memory& memory_;
  Address start_;
  std::span<const std::byte> bytes_;
};

// How far a reference to a global_State may point from its own address, in any Lua.
struct Reach {
  std::int64_t nearest = 0, farthest = 0;

  void add(const StateFields& fields) {
    nearest = std::min(nearest, static_cast<std::int64_t>(fields.nearest_G - fields.G));
    farthest = std::max(farthest, static_cast<std::int64_t>(fields.farthest_G - fields.G));
  }
  bool has(Address at, Address G) const {
    return G - at - static_cast<Address>(nearest) <= static_cast<Address>(farthest - nearest);
  }
};

}  // namespace

// A main thread and its global_State are allocated together, so the reference between them is short
// (StateFields::may_be_main). Such words are rare enough to examine each of them.
void Locator::visit_main_threads(const Memory& memory, const AddressSpace& space, std::uint64_t most,
                                 const std::function<bool(const MainThread&)>& visit) const {
  constexpr std::size_t chunk = 1 << 20, most_gaps = 4096;
  Reach reach, short_reach;
  for (const Lua* const layout : layouts_) (layout->state().short_reference ? short_reach : reach).add(layout->state());
  std::size_t read = 0, unreadable = 0;
  const std::vector<Mapping> searched = space.searched();
  Address largest = 0;
  for (const Mapping& mapping : searched) largest = std::max(largest, mapping.end - mapping.start);
  std::vector<std::byte> bytes(std::min<Address>(chunk, largest));
  for (const Mapping& mapping : searched) {
    for (Address at = mapping.start, next; at < mapping.end && read < most; at = next) {
      auto part = std::span(bytes).first(std::min<Address>(chunk, mapping.end - at));
      const std::size_t readable = memory.read_some(at, part);
      // Continues after a page that cannot be read: thread stacks have guard pages, and may share a
      // mapping with a heap.
      next = at + part.size();
      if (readable < part.size() && ++unreadable <= most_gaps)
        next = std::min(next, page_start(at + readable) + smallest_page);
      read += next - at;
      part = part.first(readable);
      const Piece piece(memory, at, part);
      for (std::size_t i = 0; i + 8 <= part.size(); i += 8) {
        const auto word = load<Address>(part, i);
        if (!reach.has(at + i, word) && !short_reach.has(at + i, word & 0xffff'ffff)) continue;
        for (const Lua* const layout : layouts_) {
          const StateFields& fields = layout->state();
          const Address L = at + i - fields.G;
          const Address G = fields.short_reference ? load<std::uint32_t>(part, i) : load<Address>(part, i);
          if (!fields.may_be_main(L, G)) continue;
          const Lua* const lua = layout->recognise_main(piece, L, G);
          if (lua != nullptr && !visit({L, G, lua})) return;
        }
      }
    }
  }
}

Address Locator::find_main_thread(const Memory& memory, const AddressSpace& space) const {
  Address found = 0;
  visit_main_threads(memory, space, most_searched, [&](const MainThread& main) {
    found = main.L;
    return false;
  });
  return found;
}

// The target runs: memory that was being written may have looked like a state. It does not when it
// is looked at again. And what a state refers to may have been freed between two reads, so that it is
// not believed, or only in part: a few more looks are enough.
void Locator::find_states(const Memory& memory, const AddressSpace& space, std::uint64_t most) {
  constexpr std::size_t most_found = 4096;
  constexpr int looks = 4;
  std::vector<MainThread> found;
  visit_main_threads(memory, space, most, [&](const MainThread& main) {
    if (!known_.contains(main.G)) found.push_back(main);
    return found.size() < most_found;
  });
  for (const auto& [L, G, lua] : found) {
    const Lua* now = lua;
    for (int i = 0; i < looks && !known_.contains(G); ++i) {  // it may be known with a better layout
      if (now->is_open(memory, L, G)) known_[G] = now;
      else if (const Lua* const again = now->recognise_main(memory, L, G); again != nullptr) now = again;
    }
  }
}

}  // namespace luaspy
