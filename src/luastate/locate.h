#pragma once
// Finds which lua_States are running on a thread, from its stack alone: no symbols, no unwinding.
//
// A running state has an anchor on the C stack. PUC: every protected call (ldo.c,
// luaD_rawrunprotected) puts a struct lua_longjmp there and points L->errorJmp at it. LuaJIT: every
// entry into the VM makes a C frame that L->cframe points at (lj_frame.h). In a state that is not
// running, this pointer is NULL. So among all valid states that the stack mentions, the running one
// has the lowest anchor at or above sp. Its resumer has the lowest anchor above the end of its
// chain (lj.previous, the C frame's PREV), and so on.
//
//      sp ▼ lower addresses                                               higher ▲
//         … luaV_execute … [lj of co2] lua_resume … auxresume … [lj of co1] … [lj of main] … main
//         └──── frames of co2 ────────┘└─────── frames of co1 ────────────┘└─ frames of main ─┘

#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "arch/machine.h"
#include "base/address_space.h"
#include "base/registers.h"
#include "luastate/lua.h"
#include "luastate/seen_states.h"
#include "luastate/state_memory.h"

namespace luaspy {

// One lua_State that is active on a thread.
struct ActiveState {
  Address L = 0;
  Address G = 0;
  const Lua* lua = nullptr;
  // End of its outermost anchor: native frames with a lower sp belong to this L.
  Address boundary = 0;
  Address anchor = 0;  // its innermost one; 0: none
};

class Locator {
 public:
  // `machine`: the target's; it must outlive this.
  explicit Locator(const Machine& machine) : machine_(machine) {}

  // Layouts to try on states of a global_State that was not seen before, best first.
  void try_layouts(std::vector<const Lua*> layouts);

  // The mappings, which say where a lua_State can be (StateMemory).
  void set_space(const AddressSpace& space) { places_.set_space(space); }

  // The words of the thread's stack from sp on. All other memory is read from `memory`.
  struct ThreadStack {
    Address start = 0;
    std::span<const std::byte> bytes;
    Address end() const { return start + bytes.size(); }
  };
  // The places on the stack whose words are addresses of states, ascending. The result of one look
  // makes the next one faster.
  struct Mentions {
    std::vector<Address> places;
    std::uint64_t generation = 0;  // of the known states at that time; 0: none
    // States to look at first, wherever the stack mentions them: those that ran then or may have, and
    // those that that look has missed. At most most_states.
    std::vector<Address> states;
  };
  static constexpr std::size_t most_states = 256;  // active on one thread: LUAI_MAXCCALLS limits nesting to 200
  // A thread in a stop.
  struct StoppedThread {
    const Memory& memory;  // the snapshot
    const Registers& registers;
    ThreadStack stack;  // in the snapshot
  };
  // What is remembered of the previous look at a thread; empty: nothing.
  struct LastLook {
    ThreadStack stack;                   // as it was then
    const Mentions* mentions = nullptr;  // the mentions() of that look
  };

  // How to treat words that could refer to a lua_State but are not known to. Most refer to
  // something else. Words at the same place as in the previous look need not be checked again: what
  // runs now was resumed by frames that were not there then, or was already running then.
  enum class Unknown {
    read,  // the others are read at once
    // The others, and states that `memory` cannot answer for, count as no states. find_missed() later
    // checks that.
    defer,
  };
  // How much work a look may be. bounded: a thread is stopped meanwhile, so what is read and compared
  // is bounded by counts, whatever is on the stack. find_missed() later judges the rest, and the next
  // look begins with what that has found.
  enum class Effort { bounded, complete };

  // Puts the states running on the thread into `active` (cleared first), innermost first. Empty: no
  // Lua runs there. `deferred`: receives the words that were deferred.
  void locate(const StoppedThread& thread, const LastLook& last, Unknown unknown, std::vector<ActiveState>& active,
              std::vector<Address>& deferred, Effort effort = Effort::complete);
  // Of the last locate().
  const Mentions& mentions() const { return mentions_; }

  // Of the last locate(): PUC states that the stack mentions and that are calling something without
  // a protected call below it. They have no anchor, so each may run on this thread or on another
  // one. The frames of luaV_execute show which frames belong to them.
  const std::vector<ActiveState>& unprotected() const { return unprotected_; }
  // Was no anchor found, so that the result of locate() is only the first of the states that may
  // run here?
  bool guessed() const { return guessed_; }

  // What the last locate() has left out because of its bounds.
  struct LeftOut {
    std::vector<Address> words;  // further words that were deferred, and known states
    Address stack = 0;           // the stack was not searched from there on; 0: all of it was
    bool none() const { return words.empty() && stack == 0; }
  };
  const LeftOut& left_out() const { return left_out_; }

  // After a look that deferred words or left some out: looks for lua_States among them, in memory as
  // it is now. If there are any, they may have run on this stack, so the look is unusable. Any state
  // counts that was deferred; of what was left out, those that are anchored on this stack or call
  // something unprotected: a pool of idle states is no loss. At most most_states, first those that
  // run on this stack now.
  // `mentions`: of that look; the states in it were not missed. `is_known`: whether a global_State is
  // at an address. May be called while another thread is in locate().
  std::vector<Address> find_missed(const Memory& memory, const ThreadStack& stack, std::span<const Address> deferred,
                                   const LeftOut& left_out, const Mentions& mentions,
                                   const std::function<bool(Address)>& is_known) const;

  // Is this state, found by an earlier look, still a state? For memory that may have been freed
  // since.
  static bool is_state(const Memory& memory, const ActiveState& state);

  // A main thread anywhere in the target's writable memory, 0 if there is none. Finds states that
  // no stack mentions. Reads up to most_searched bytes of live memory, which takes some 300 ms.
  Address find_main_thread(const Memory& memory, const AddressSpace& space) const;
  // Adds all of them to global_states(): a process may have many Luas, some of them idle. A closed
  // global_State may look valid until its memory is used again, so those that are not open
  // (Lua::is_open) are left out. `most`: bytes that are looked at.
  void find_states(const Memory& memory, const AddressSpace& space, std::uint64_t most);
  static constexpr std::uint64_t most_searched = 1 << 30;  // where a second more would be too long
  const std::unordered_map<Address, const Lua*>& global_states() const { return known_; }
  // Forgets which layout each global state has: after an exec, or when walks fail.
  void forget();

 private:
  class Scan;  // one locate()
  struct Candidate {
    Address L, G, anchor;
    const Lua* lua;
    bool unprotected;
  };
  struct MainThread {
    Address L, G;
    const Lua* lua;
  };
  // Calls `visit` for what looks like a main thread, until it returns false.
  void visit_main_threads(const Memory& memory, const AddressSpace& space, std::uint64_t most,
                          const std::function<bool(const MainThread&)>& visit) const;

  const Machine& machine_;
  StateMemory places_;
  std::vector<const Lua*> layouts_;
  bool short_layouts_ = false;                     // some layout has 32-bit references
  bool short_states_ = false;                      // some state has 32-bit references
  std::unordered_map<Address, const Lua*> known_;  // by global_State
  SeenStates seen_;
  // The last look saw what looked like a state of an unknown global_State, but did not fit.
  struct Doubt {
    static constexpr int most = 100;
    bool pending = false;
    int left = most;
  } doubt_;

  // Of the last locate(). The first two are empty between calls, and keep their memory.
  std::vector<Address> chunk_;  // words to read next
  std::vector<Candidate> candidates_;
  Mentions mentions_;
  LeftOut left_out_;
  std::vector<ActiveState> unprotected_;
  bool guessed_ = false;
};

}  // namespace luaspy
