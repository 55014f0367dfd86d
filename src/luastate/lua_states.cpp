#include "luastate/lua_states.h"

#include <algorithm>
#include <array>

#include "base/word_hash.h"

namespace luaspy {

std::uint64_t LuaStates::identity(const Memory& memory, Address G) const {
  const std::array<AddressRange, 3> fields = identity_fields(G);
  std::array<std::byte, most_identity> bytes{};
  std::array<Memory::Request, 3> requests;
  std::size_t used = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t size = std::min<std::size_t>(fields[i].size(), bytes.size() - used);
    requests[i] = {fields[i].start, std::span(bytes).subspan(used, size)};
    used += size;
  }
  if (used == 0) return 0;
  memory.read_batch(requests);
  if (!std::ranges::all_of(requests, [](const auto& each) { return each.done || each.into.empty(); })) return 0;
  std::uint64_t hash = hash_basis;
  for (std::size_t at = 0; at + sizeof(hash) <= bytes.size(); at += sizeof(hash))
    mix(hash, load<std::uint64_t>(bytes, at));
  return std::max<std::uint64_t>(hash, 1);
}

}  // namespace luaspy
