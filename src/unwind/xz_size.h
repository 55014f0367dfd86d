#pragma once
// How big a file of xz (tukaani.org/xz/xz-file-format.txt) is unpacked, told without unpacking it:
// a hostile one of a megabyte makes gigabytes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace luaspy {

// Bytes in the first stream, by its LZMA2 chunks: a decoder makes no more than they say. nullopt:
// it is no such stream, has other filters, or ends too early.
std::optional<std::uint64_t> unpacked_size(std::span<const std::byte> xz);

}  // namespace luaspy
