#pragma once
// The size of a Lua's heap as it is at this instant, while the Lua may run.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "luastate/lua.h"

namespace luaspy {

// Bytes; nullopt: the counter cannot be read.
inline std::optional<std::int64_t> heap_now(const Memory& memory, const Lua& lua, Address G) {
  std::array<std::byte, Lua::largest_counter> bytes{};
  const AddressRange counter = lua.heap_counter(G);
  const std::span<std::byte> words = std::span(bytes).first(std::min(counter.size(), Lua::largest_counter));
  if (words.empty() || !memory.read(counter.start, words)) return std::nullopt;
  return lua.heap_bytes(words);
}

}  // namespace luaspy
