#include "luastate/why_not.h"

#include <algorithm>

#include "luastate/lua.h"

namespace luaspy {

void RowTrial::add(Address L, const char* why_not) {
  if (why_not == nullptr) {
    if (fitted++ == 0) first_fit = L;
    return;
  }
  Failures& failures = failed[why_not];
  if (failures.count++ == 0) failures.first = L;
}

void try_word(const Memory& memory, Address word, std::span<RowTrial> trials) {
  for (RowTrial& trial : trials) {
    const StateFields& fields = trial.lua.state();
    if (memory.get<std::uint8_t>(word + fields.tt) == fields.tag) trial.add(word, trial.lua.misfit(memory, word));
  }
}

std::uint64_t try_memory(const Memory& memory, const AddressSpace& space, std::uint64_t most,
                         std::span<RowTrial> trials) {
  constexpr std::size_t chunk = 1 << 20;
  std::vector<std::byte> bytes(chunk);
  std::uint64_t searched = 0;
  for (const Mapping& mapping : space.searched()) {
    for (Address at = mapping.start; at < mapping.end && searched < most; at += chunk) {
      const auto part = std::span(bytes).first(std::min<Address>(chunk, mapping.end - at));
      searched += part.size();
      if (!memory.read(at, part)) continue;
      for (std::size_t i = 0; i + 8 <= part.size(); i += 8) {
        for (RowTrial& trial : trials) {
          const StateFields& fields = trial.lua.state();
          const Address L = at + i - fields.G;
          const Address G = fields.short_reference ? load<std::uint32_t>(part, i) : load<Address>(part, i);
          if (!fields.may_be_main(L, G)) continue;
          const char* const why_not = trial.lua.misfit(memory, L);
          constexpr std::string_view no_thread = "it does not have the type of a thread";
          if (why_not == nullptr || why_not != no_thread) trial.add(L, why_not);
        }
      }
    }
  }
  return searched;
}

}  // namespace luaspy
