#pragma once
// The stream of memprof, the profiler of allocations in tarantool/luajit ("ljm" of version 3, lj_memprof.h): after a
// table of symbols (luajit_symbols.h) each allocation, reallocation and free, one after another, without times.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "input/byte_reader.h"
#include "input/luajit_symbols.h"

namespace luaspy {

struct MemprofEvent {
  enum class Kind : std::uint8_t { allocation = 1, free, reallocation };
  Kind kind = Kind::allocation;
  LuajitPlace place{};
  std::uint64_t old_address = 0, old_size = 0;  // bytes; of free and reallocation
  std::uint64_t new_address = 0, new_size = 0;  // of allocation and reallocation
};

// The events, one after another, and the symbols as they are then. Returns what is wrong with the stream, or "".
// `see` returns false to end it there.
std::string each_memprof_event(ByteReader& in, LuajitSymbols& symbols,
                               const std::function<bool(const MemprofEvent&)>& see);

// The blocks that were allocated while the profiler ran, and not freed yet.
class MemprofBlocks {
 public:
  struct Block {
    std::uint64_t size = 0;
    LuajitPlace place;  // where it was allocated, or reallocated last
  };
  // What the event frees or moves; nullopt if nothing, or a block that is older than the stream.
  std::optional<Block> apply(const MemprofEvent& event);
  bool has_room() const { return blocks_.size() < most_blocks; }
  const std::unordered_map<std::uint64_t, Block>& blocks() const { return blocks_; }

 private:
  static constexpr std::size_t most_blocks = 1 << 24;
  std::unordered_map<std::uint64_t, Block> blocks_;  // by address
};

}  // namespace luaspy
