#pragma once
// The memory of all Luas of a process at one instant: what a look at a live process, a core file or
// a .luaheap file gives, and all that an analysis needs.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/resident_memory.h"
#include "heap/memory_image.h"
#include "luastate/code_names.h"
#include "luastate/lua.h"

namespace luaspy {

struct HeapSnapshot {
  struct State {
    Address G = 0;
    const Lua* lua = nullptr;
  };
  int pid = 0;
  std::string command;
  std::int64_t taken_ns = 0;        // since 1970
  bool of_process = false;          // that ran then; false: of a core file, or that is not known
  std::int64_t stood_still_ns = 0;  // `of_process`: 0: nothing had to be stopped
  bool of_one_instant = true;       // false: a thread ran while memory was copied
  std::shared_ptr<MemoryImage> memory;
  std::uint64_t bytes = 0;  // of memory
  // Of mappings that were left out, as the kernel does not say which pages they have: before Linux 6.7.
  std::uint64_t unknown_bytes = 0;
  std::vector<State> states;
  // Of C functions. Asks the process, or the core file, until it is closed.
  std::shared_ptr<CodeNames> code = std::make_shared<CodeNames>();
  // Of a live process, if it was asked for: what was resident, and where sleeping threads have their
  // stacks.
  std::optional<ResidentMemory> resident;
  std::vector<Address> stack_pointers;
};

// Is that what Lua's own counter says, to 1 in 10,000 or an object? Both in bytes.
bool is_close(std::int64_t difference, std::int64_t counter);
// Do the sizes of all objects make what the counters say? They do not if the instant was in the middle
// of a rehash, where a table's array or the strings' table is neither the old nor the new one, or of
// the making of an object, whose fields are not set yet. Nor do they if a heap is not found: LuaJIT frees
// the old table of strings before it refers to the new one (lj_str.c, lj_str_resize).
bool adds_up(const HeapSnapshot& snapshot);

}  // namespace luaspy
