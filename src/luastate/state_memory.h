#pragma once
// Where in a target's memory a lua_State can be, by the mappings. It decides for each word of a stack whether it is
// worth a read.
//
// A state is in writable memory, or in private memory without a file that may become writable later
// (malloc/arena.c in glibc reserves an arena with PROT_NONE and makes it writable as it grows). Addresses outside of
// the known mappings are also tried, since memory is mapped all the time.

#include <cstdint>
#include <vector>

#include "base/address_space.h"

namespace luaspy {

class StateMemory {
 public:
  // Without a call to this, every address is tried.
  void set_space(const AddressSpace& space);

  // A look begins: pages that could not be read are tried again after 1, 2, 4, … looks.
  void begin_look() { ++looks_; }
  std::uint64_t looks() const { return looks_; }

  // Quick tests of a word, which most words of a stack do not pass.
  bool in_range(Address word) const { return word - lowest_ < highest_ - lowest_ && word % 8 == 0; }
  // As a reference of 32 bits (LuaJIT without GC64).
  bool in_short_range(Address word) const {
    return word >= lowest_address && word >= lowest_ && word < highest_short_ && word % 8 == 0;
  }

  // For a word that has passed one of them: whether it may be the address of a state.
  bool may_hold_state(Address word) const;
  // The same, and whether a read is likely to succeed.
  bool worth_reading(Address word) const;
  void record_unreadable(Address word);

 private:
  enum class Use : std::uint8_t {
    no_data,
    reserved,  // not writable when the mappings were read, but may become so
    writable
  };
  struct Range {
    Address start, end;
    Use use;
  };
  struct Unreadable {
    Address page = 0;
    std::uint64_t again_at = 0;  // the look at which to try again
    unsigned failures = 0;
  };
  static constexpr std::size_t most_unreadable = 256;

  const Range* range_of(Address word) const;
  static std::size_t slot_of(Address word);

  std::vector<Range> ranges_;  // ascending; neighbours with the same use are joined
  // Pages of reserved ranges; by hash of the page, the last of those with the same hash.
  std::vector<Unreadable> unreadable_ = std::vector<Unreadable>(most_unreadable);
  std::uint64_t looks_ = 0;
  // Bounds of writable memory; highest_short_: of the part below 4 GiB.
  Address lowest_ = 0, highest_ = ~Address{0}, highest_short_ = ~Address{0};
};

}  // namespace luaspy
