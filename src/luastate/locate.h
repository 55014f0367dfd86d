#pragma once
// Which lua_States are running on a thread, found from its stack alone: no symbols, no unwinding.
//
// Every protected call (ldo.c, luaD_rawrunprotected) puts a struct lua_longjmp on the C stack and points L->errorJmp at
// it; a state that is not running has errorJmp NULL. So of all valid states that the stack mentions, the running one has
// the lowest errorJmp at or above sp; the next lowest above the end of its chain (lj.previous) is its resumer; and so on.
//
//      sp ▼ lower addresses                                               higher ▲
//         … luaV_execute … [lj of co2] lua_resume … auxresume … [lj of co1] … [lj of main] … main
//         └──── frames of co2 ────────┘└─────── frames of co1 ────────────┘└─ frames of main ─┘

#include <span>
#include <unordered_map>
#include <vector>

#include "address_space.h"
#include "luastate/layout.h"
#include "registers.h"

namespace luaspy {

// One lua_State that is active on a thread.
struct Activation {
  Address L = 0;
  Address G = 0;
  const Layout* layout = nullptr;
  Address boundary = 0;  // its outermost longjmp record: native frames whose sp is below belong to this L
};

class Locator {
 public:
  // Rows to try on states of a global_State that was not seen before, best first.
  void try_rows(std::vector<const Layout*> rows);

  // Where a lua_State can be at all: in writable memory. Addresses that this does not know are tried, too: memory is mapped
  // all the time. Without it every address is tried.
  void know(const AddressSpace& space);

  // The words of the thread's stack from sp on. `memory` answers for the rest of the target.
  struct ThreadStack {
    Address start = 0;
    std::span<const std::byte> bytes;
    Address end() const { return start + bytes.size(); }
  };

  // The states running on the thread, innermost first, into `active` (which is cleared). Empty: no Lua runs there.
  void locate(const Memory& memory, const Registers& registers, const ThreadStack& stack, std::vector<Activation>& active);

  // A main thread anywhere in the writable memory of the target, 0 if there is none: for states that no stack mentions. Reads
  // up to 1 GiB of the live memory, some 100 ms.
  Address find_main_thread(const Memory& memory, const AddressSpace& space) const;
  const std::unordered_map<Address, const Layout*>& global_states() const { return known_; }
  // Forgets which row a global state has: after an exec, or when walks fail.
  void forget() { known_.clear(), rejected_.clear(); }

 private:
  struct Candidate {
    Address L, G, errorJmp;
    const Layout* layout;
  };
  void collect(const Memory& memory, std::span<const Address> words);
  const Layout* layout_of(const Memory& memory, Address L, std::span<const std::byte> bytes, Address& G);
  bool fits(const Memory& memory, const Layout& row, Address L, std::span<const std::byte> bytes) const;

  bool worth_reading(Address word) const;

  struct Range {
    Address start, end;
    bool writable;
  };
  std::vector<Range> ranges_;      // ascending; neighbours of one kind joined
  std::vector<Address> unmapped_;  // words that could not be read since the last know(), sorted
  std::vector<const Layout*> rows_;
  std::unordered_map<Address, const Layout*> known_;  // global_State → row
  std::unordered_map<Address, int> rejected_;
  std::vector<Candidate> candidates_;
  std::vector<Address> tried_;     // words looked at in this locate(), sorted
};

}  // namespace luaspy
