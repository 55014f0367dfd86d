#pragma once
// Which lua_States are running on a thread, found from its stack alone: no symbols, no unwinding.
//
// A running state has an anchor on the C stack. PUC: every protected call (ldo.c, luaD_rawrunprotected) puts a struct lua_longjmp
// there and points L->errorJmp at it. LuaJIT: every entry into the VM makes a C frame that L->cframe points at (lj_frame.h). A
// state that is not running has NULL there. So of all valid states that the stack mentions, the running one has the lowest anchor at
// or above sp; the next lowest above the end of its chain (lj.previous, the C frame's PREV) is its resumer; and so on.
//
//      sp ▼ lower addresses                                               higher ▲
//         … luaV_execute … [lj of co2] lua_resume … auxresume … [lj of co1] … [lj of main] … main
//         └──── frames of co2 ────────┘└─────── frames of co1 ────────────┘└─ frames of main ─┘

#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "address_space.h"
#include "luastate/dialect.h"
#include "registers.h"

namespace luaspy {

// One lua_State that is active on a thread.
struct Activation {
  Address L = 0;
  Address G = 0;
  Dialect lua;
  Address boundary = 0;  // the end of its outermost anchor: native frames whose sp is below belong to this L
};

class Locator {
 public:
  // Rows to try on states of a global_State that was not seen before, best first.
  void try_rows(std::vector<Dialect> rows);

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
  const std::unordered_map<Address, Dialect>& global_states() const { return known_; }
  // Forgets which row a global state has: after an exec, or when walks fail.
  void forget() { known_.clear(), rejected_.clear(); }

 private:
  struct Candidate {
    Address L, G, anchor;
    Dialect lua;
  };
  void collect(const Memory& memory, std::span<const Address> words);
  Dialect dialect_of(const Memory& memory, Address L, std::span<const std::byte> bytes, Address& G);
  bool worth_reading(Address word) const;

  struct Range {
    Address start, end;
    bool writable;
  };
  std::vector<Range> ranges_;      // ascending; neighbours of one kind joined
  std::vector<Address> unmapped_;  // words that could not be read since the last know(), sorted
  std::vector<Dialect> rows_;
  bool short_references_ = false;  // some row has 32-bit references
  std::unordered_map<Address, Dialect> known_;  // by global_State
  std::deque<LuajitLayout> found_;  // what known_ refers to
  std::unordered_map<Address, int> rejected_;
  std::vector<Candidate> candidates_;
  std::vector<Address> tried_;     // words looked at in this locate(), sorted
};

}  // namespace luaspy
