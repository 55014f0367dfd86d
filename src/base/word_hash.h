#pragma once
// FNV-1a by words (Fowler, Noll, Vo: "The FNV Non-Cryptographic Hash Algorithm", 64 bits), for telling whether what was
// read is the same as before.

#include <cstdint>
#include <string_view>

namespace luaspy {

inline constexpr std::uint64_t hash_basis = 0xcbf29ce484222325;

inline void mix(std::uint64_t& hash, std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3; }
// With its length.
inline void mix(std::uint64_t& hash, std::string_view text) {
  mix(hash, text.size());
  for (const char c : text) mix(hash, static_cast<std::uint8_t>(c));
}

}  // namespace luaspy
