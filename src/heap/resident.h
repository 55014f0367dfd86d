#pragma once
// Where the resident memory of a process is: parts that add up to it exactly.
//
// The kernel counts pages, programs use bytes. Each byte of a resident page belongs to one part
// here: the part of what it is used for, or of what it would be given out for. A page of which one
// half is a table and one half is free counts half to each. What is not resident counts nowhere.
//
// How much of an allocator's memory is Lua objects is said by a walk of all objects (LuaUse), in
// bytes. All of these bytes are taken for resident, as objects are written when they are made. If
// there are more of them than the allocator has resident (some are in swap, say), they count as
// many bytes as it has, and a note says so.

#include <string>
#include <vector>

#include "base/resident_memory.h"

namespace luaspy {

class Lua;

// What a walk of one global_State's objects has found. Bytes, as Lua itself counts them: without
// the headers that an allocator adds.
struct LuaUse {
  const Lua* lua = nullptr;
  Address G = 0;                     // its global_State
  std::uint64_t live = 0, dead = 0;  // dead: not yet freed by the collector
  std::uint64_t stacks = 0;          // of its coroutines, in neither of these
};

enum class ResidentKind : std::uint8_t {
  lua_live,
  lua_dead,
  lua_stacks,
  luajit_free,
  luajit_rest,
  machine_code,
  c_in_use,
  c_free,
  c_unknown,
  thread_stacks,
  files,
  shared,
  rest,
};
inline constexpr std::size_t resident_kinds = 13;

std::string_view key(ResidentKind kind);  // "lua_live": for programs
// "live Lua objects".
std::string_view name(ResidentKind kind);
// A sentence about what counts as it.
std::string_view meaning(ResidentKind kind);

struct ResidentReport {
  // All in bytes. `rss` is the sum of the parts, and that of Rss in /proc/PID/smaps; ps(1) shows a
  // number that the kernel updates only from time to time.
  std::uint64_t rss = 0, swap = 0;
  std::uint64_t parts[resident_kinds] = {};
  // Of the part `files`: pages that the process has written, and that no longer are the file's:
  // variables. The kernel can take back the others at any time.
  std::uint64_t files_written = 0;
  std::string c_heap;              // whose malloc it is: "glibc's malloc, 3 arenas", or that it is not glibc's
  std::vector<std::string> notes;  // what could not be told apart, and what does not fit; a sentence each

  std::uint64_t operator[](ResidentKind kind) const { return parts[static_cast<std::size_t>(kind)]; }
};

// `memory` and `resident` should be of one moment: a program that runs in between changes both.
// `stack_pointers`: of sleeping threads. Reads the C heap and LuaJIT's allocator, chunk by chunk.
ResidentReport explain_resident(const Memory& memory, const ResidentMemory& resident, std::span<const LuaUse> uses,
                                std::span<const Address> stack_pointers);

}  // namespace luaspy
