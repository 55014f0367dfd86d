#pragma once
// Why no Lua is found: tries each layout on everything that looks a little like a lua_State, and
// counts the checks that fail. For a report about a process (doctor.h); sampling does not use this.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/address_space.h"

namespace luaspy {

class Lua;

// A layout, and the results at the places where it was tried.
struct RowTrial {
  struct Failures {
    std::int64_t count = 0;
    Address first = 0;  // one of the places
  };
  const Lua& lua;
  std::int64_t fitted = 0;
  Address first_fit = 0;
  std::map<std::string, Failures> failed;  // by the first check that failed

  explicit RowTrial(const Lua* of) : lua(*of) {}
  void add(Address L, const char* why_not);
};

// Tries what `word` points at with each layout that finds the type of a thread there.
void try_word(const Memory& memory, Address word, std::span<RowTrial> trials);

// Tries every place in writable memory that is laid out like a main thread and its global_State,
// which are allocated together. Returns the number of bytes searched, at most `most`.
std::uint64_t try_memory(const Memory& memory, const AddressSpace& space, std::uint64_t most,
                         std::span<RowTrial> trials);

}  // namespace luaspy
