#pragma once
// A burst: some calls of a Lua's allocation function (lua.h, lua_Alloc), trapped one after another.
// The thread stands still at the last of them, whose stack is read. This is what the calls mean.

#include <algorithm>
#include <cstdint>
#include <span>

#include "attach/call_trap.h"
#include "base/registers.h"

namespace luaspy {

// A call of lua_Alloc(ud, ptr, osize, nsize).
struct AllocationCall {
  std::uint64_t pointer = 0, old_size = 0, new_size = 0;
  // What it adds to the heap, bytes; 0: it frees, or makes something smaller. For a new block,
  // old_size is no size (it may be a type).
  std::uint64_t growth() const {
    if (pointer == 0) return new_size;
    return new_size > old_size ? new_size - old_size : 0;
  }
  bool is_new() const { return pointer == 0 && new_size != 0; }
};
AllocationCall allocation_call(const std::array<std::uint64_t, 4>& arguments);

// Where a thread will be when the function has returned whose first instruction it is at; pc 0: not
// known.
struct ReturnPlace {
  Address pc = 0, sp = 0;
};
ReturnPlace return_place(const Registers& at_entry, const Memory& memory);

// Of a burst's calls: how many grow, and by how much together.
struct BurstSums {
  static constexpr std::uint64_t most_bytes = 4096;  // that a call counts
  static constexpr double small = 32;                // bytes of a call, if none is known
  std::int64_t growing = 0;
  std::uint64_t bytes = 0;
  double mean() const { return static_cast<double>(bytes) / static_cast<double>(growing); }
  // The same, where a few calls do not say much: the others are as usual.
  double mean_or(double usual) const {
    constexpr std::int64_t enough = 16;
    const std::int64_t others = std::max<std::int64_t>(enough - growing, 0);
    return (static_cast<double>(bytes) + static_cast<double>(others) * usual) / static_cast<double>(growing + others);
  }
  BurstSums& operator+=(const BurstSums& more) {
    growing += more.growing, bytes += more.bytes;
    return *this;
  }
};
BurstSums sums_of(std::span<const CallTrap::Call> calls);

// After how many calls the sizes repeat: the allocations in a loop of the program. 0: they do not,
// as far as the calls show.
std::size_t period_of(std::span<const CallTrap::Call> calls);

}  // namespace luaspy
