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

  // Rows to try on states of a global_State that was not seen before, best first.
  void try_rows(std::vector<const Lua*> rows);

  // The mappings, which say where a lua_State can be: in writable memory, and in private memory
  // without a file that may become writable later (malloc/arena.c in glibc reserves an arena with
  // PROT_NONE and makes it writable as it grows). Addresses outside of the known mappings are also
  // tried, since memory is mapped all the time. Without a call to this, every address is tried.
  void set_space(const AddressSpace& space);

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
  // Forgets which row each global state has: after an exec, or when walks fail.
  void forget();

 private:
  struct Candidate {
    Address L, G, anchor;
    const Lua* lua;
    bool unprotected;
  };
  // An address that has been a state may become one again, whatever was there meanwhile. A hash
  // table, since this is called for every word of every stack.
  bool has_been_state(Address word) const { return seen_states_[slot_of(word)] == word; }
  std::size_t slot_of(Address word) const;
  void remember_state(Address word);
  void forget_states();
  struct MainThread {
    Address L, G;
    const Lua* lua;
  };
  // Calls `visit` for what looks like a main thread, until it returns false.
  void visit_main_threads(const Memory& memory, const AddressSpace& space, std::uint64_t most,
                          const std::function<bool(const MainThread&)>& visit) const;
  bool observe(const Memory& memory, Address word, bool as_before, const ThreadStack& stack, Unknown unknown);
  bool is_met(Address word) const;
  void leave_out(Address word);
  void defer(Address word);
  void collect(const Memory& memory, Unknown unknown);
  void add_candidate(const Memory& memory, Address L, std::span<const std::byte> head);
  const Lua* lua_of(const Memory& memory, Address L, std::span<const std::byte> head, Address& G);
  bool worth_reading(Address word) const;
  void record_unreadable(Address word);

  struct Range {
    Address start, end;
    enum class Use : std::uint8_t {
      no_data,
      reserved,
      writable
      // reserved: not writable when the mappings were read, but may become so.
    } use;
  };
  const Machine& machine_;
  const Range* range_of(Address word) const;
  std::vector<Range> ranges_;  // ascending; neighbours with the same use are joined
  // Pages of reserved ranges that could not be read. The number of looks before the next try
  // doubles each time.
  struct Unreadable {
    Address page = 0;
    std::uint64_t again_at = 0;  // the look at which to try again
    unsigned failures = 0;
  };
  static constexpr std::size_t most_unreadable = 256;
  // By hash of the page; the last of those with the same hash.
  std::vector<Unreadable> unreadable_ = std::vector<Unreadable>(most_unreadable);
  std::uint64_t looks_ = 0;
  // Bounds of writable memory; highest_short_: of the part below 4 GiB.
  Address lowest_ = 0, highest_ = ~Address{0}, highest_short_ = ~Address{0};
  std::vector<const Lua*> rows_;
  bool short_rows_ = false;                        // some row has 32-bit references
  bool short_states_ = false;                      // some state has 32-bit references
  std::unordered_map<Address, const Lua*> known_;  // by global_State
  std::vector<Address> seen_states_;               // by hash; 0: none
  std::size_t seen_count_ = 0;
  std::uint64_t generation_ = 1;  // of seen_states_
  Mentions mentions_;
  static constexpr int most_doubts = 100;
  // The last look saw what looked like a state of an unknown global_State, but did not fit.
  bool doubtful_ = false;
  int doubts_left_ = most_doubts;
  bool asks_again_ = false;                   // the current locate(), because of that
  std::vector<Address> chunk_;                // words to read next
  std::vector<Address>* deferred_ = nullptr;  // of the current locate()
  LeftOut left_out_;
  // What the current locate() may still do: words that it compares with known states, known states
  // that it reads, states of unknown global_States that it recognises, other words that it reads; and
  // how many words it keeps for find_missed().
  struct Room {
    std::size_t words = 0, known = 0, strange = 0, unknown = 0, deferred = 0, left_out = 0;
  };
  static const Room complete_room, bounded_room;
  Room room_;
  std::vector<Candidate> candidates_;
  std::vector<ActiveState> unprotected_;
  bool guessed_ = false;
};

}  // namespace luaspy
