#pragma once
// The unpacked size of an xz file (tukaani.org/xz/xz-file-format.txt), found without unpacking it:
// a hostile file of one megabyte unpacks to gigabytes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace luaspy {

// Unpacked bytes of the first stream, according to its LZMA2 chunks: a decoder never produces more.
// nullopt if it is not such a stream, has other filters, or ends too early.
std::optional<std::uint64_t> unpacked_size(std::span<const std::byte> xz);

}  // namespace luaspy
