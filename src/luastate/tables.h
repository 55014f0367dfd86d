#pragma once
// Where a table has its entries.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/memory.h"
#include "luastate/offset.h"

namespace luaspy {

// The offsets of Table's fields. Rows have the original ones; some programs patch Table (Redis adds
// a field). LuaJIT has only one form, and does not use this.
struct TableForm {
  Offset lsizenode = 0, node = 0, sizearray = 0, array = 0, metatable = 0;
  bool operator==(const TableForm&) const = default;
};

// Where a table has its entries.
struct TableParts {
  Address array = 0;             // 0: no such part
  std::uint32_t array_size = 0;  // slots; LuaJIT: slot 0 is index 0, PUC: index 1
  Address nodes = 0;
  std::uint32_t node_count = 0;
  Address metatable = 0;  // 0: none
  std::uint64_t slots() const { return std::uint64_t{array_size} + node_count; }
};
// Visits elements that are stored one after the other, reading them in pieces, until `visit`
// returns false. False if they cannot all be read: then those that could be read were visited.
template <typename Visit>
bool visit_elements(const Memory& memory, Address first, std::size_t size, std::uint64_t count, Visit visit) {
  std::array<std::byte, 4096> room;  // in a stop, nothing is allocated
  std::uint64_t piece = room.size() / size;
  if (piece == 0) return false;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t some = std::min(piece, count - done);
    const std::span<std::byte> bytes = std::span(room).first(some * size);
    if (!memory.read(first + done * size, bytes)) {
      if (some == 1) return false;
      piece = some / 2;
      continue;
    }
    for (std::uint64_t i = 0; i < some; ++i) {
      if (!visit(std::span<const std::byte>(bytes).subspan(i * size, size))) return true;
    }
    done += some;
  }
  return true;
}

}  // namespace luaspy
