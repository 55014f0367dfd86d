#pragma once
// Why a Lua is not found: each row is tried on everything that looks a little like a lua_State, and
// the checks that fail are counted. For a report about a process (doctor.h); sampling does none of
// this.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/address_space.h"
#include "luastate/dialect.h"

namespace luaspy {

// A row, and what became of the places that it was tried at.
struct RowTrial {
  struct Failures {
    std::int64_t count = 0;
    Address first = 0;  // one of the places
  };
  Dialect lua;
  std::int64_t fitted = 0;
  Address first_fit = 0;
  std::map<std::string, Failures> failed;  // by the check that failed first

  explicit RowTrial(const Dialect& of) : lua(of) {}
  void add(Address L, const char* why_not);
};

// Why what is at `L` is no lua_State of this Lua; nullptr: it is one.
const char* misfit(const Memory& memory, const Dialect& lua, Address L);

// What `word` points at is tried with each row by which it has the type of a thread.
void try_word(const Memory& memory, Address word, std::span<RowTrial> trials);

// Every place in writable memory that is laid out like a main thread and its global_State, which
// are allocated as one. Returns how many bytes were searched: at most `most`.
std::uint64_t try_memory(const Memory& memory, const AddressSpace& space, std::uint64_t most,
                         std::span<RowTrial> trials);

}  // namespace luaspy
