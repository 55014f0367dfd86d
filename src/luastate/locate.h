#pragma once
// Which lua_States are running on a thread, found from its stack alone: no symbols, no unwinding.
//
// A running state has an anchor on the C stack. PUC: every protected call (ldo.c,
// luaD_rawrunprotected) puts a struct lua_longjmp there and points L->errorJmp at it. LuaJIT: every
// entry into the VM makes a C frame that L->cframe points at (lj_frame.h). A state that is not
// running has NULL there. So of all valid states that the stack mentions, the running one has the
// lowest anchor at or above sp; the next lowest above the end of its chain (lj.previous, the C
// frame's PREV) is its resumer; and so on.
//
//      sp ▼ lower addresses                                               higher ▲
//         … luaV_execute … [lj of co2] lua_resume … auxresume … [lj of co1] … [lj of main] … main
//         └──── frames of co2 ────────┘└─────── frames of co1 ────────────┘└─ frames of main ─┘

#include <deque>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/address_space.h"
#include "base/registers.h"
#include "luastate/dialect.h"

namespace luaspy {

// One lua_State that is active on a thread.
struct Activation {
  Address L = 0;
  Address G = 0;
  Dialect lua;
  Address boundary = 0;  // the end of its outermost anchor: native frames whose sp is below belong to this L
};

// Why what is at `L` is no lua_State as `row` has it, in a few words; nullptr: it is one.
const char* misfit(const Memory& memory, const Layout& row, Address L);

class Locator {
 public:
  // Rows to try on states of a global_State that was not seen before, best first.
  void try_rows(std::vector<Dialect> rows);

  // Where a lua_State can be at all: in writable memory, and in private memory without a file that
  // may become writable later (malloc/arena.c in glibc: an arena is reserved with PROT_NONE and
  // made writable as it grows). Addresses that this does not know are tried, too: memory is mapped
  // all the time. Without it every address is tried.
  void know(const AddressSpace& space);

  // The words of the thread's stack from sp on. `memory` answers for the rest of the target.
  struct ThreadStack {
    Address start = 0;
    std::span<const std::byte> bytes;
    Address end() const { return start + bytes.size(); }
  };
  // Where it has words that are addresses of states, ascending: these of the look before make the
  // next one faster.
  struct Mentions {
    std::vector<Address> places;
    std::uint64_t generation = 0;  // of what was known of states then; 0: none
  };

  // Most words of a stack that could refer to a lua_State refer to something else. Those that are
  // where they were at the look before need not be asked again: what runs now has been resumed by
  // frames that were not there then, or it ran then, too.
  enum class Unknown {
    read,   // the other ones are read at once
    defer,  // they, and states that `memory` cannot answer for, are taken for no states; is_missed() tells whether that
            // was right
  };

  // The states running on the thread, innermost first, into `active` (which is cleared). Empty: no
  // Lua runs there. `before`: the same stack as the last look at it saw it; empty if there was
  // none. `mentions`: what that look has put there; null, or empty, if it is not known. `deferred`:
  // the words that were deferred.
  void locate(const Memory& memory, const Registers& registers, const ThreadStack& stack, const ThreadStack& before,
              Unknown unknown, std::vector<Activation>& active, std::vector<Address>& deferred,
              const Mentions* mentions = nullptr);
  // Of the last locate().
  const Mentions& mentions() const { return mentions_; }

  // Of the last locate(): PUC states that the stack mentions and that are calling something without
  // a protected call below it. They have no anchor: one of them may run on this thread, or on
  // another one. Which frames are whose, luaV_execute's frames tell.
  const std::vector<Activation>& unprotected() const { return unprotected_; }
  // Was no anchor found, and what locate() returned is only the first of the states that may run
  // here?
  bool guessed() const { return guessed_; }

  // After a look that deferred: looks for a lua_State among what it left out, in the memory as it
  // is now. True if there is one: it may have run on this stack, and the look is worth nothing.
  // `is_known`: whether there is a global_State at an address. It may be asked while another thread
  // is in locate().
  bool is_missed(const Memory& memory, std::span<const Address> deferred,
                 const std::function<bool(Address)>& is_known) const;

  // Is this, of which a look has told, a state still? For memory that may have been freed since.
  static bool is_state(const Memory& memory, const Activation& state);

  // A main thread anywhere in the writable memory of the target, 0 if there is none: for states
  // that no stack mentions. Reads up to 1 GiB of the live memory, some 100 ms.
  Address find_main_thread(const Memory& memory, const AddressSpace& space) const;
  // All of them, into global_states(): one process may have many Luas, some of which are idle. A
  // global_State that was closed may look like one as long as nothing else is in its memory: those
  // whose registry is no table any more are left out.
  void find_states(const Memory& memory, const AddressSpace& space);
  const std::unordered_map<Address, Dialect>& global_states() const { return known_; }
  // Forgets which row a global state has: after an exec, or when walks fail.
  void forget();

 private:
  struct Candidate {
    Address L, G, anchor;
    Dialect lua;
    bool unprotected;
  };
  // What has been a state may be one again, whatever was there meanwhile. A table by hash: this is
  // asked for every word of every stack.
  bool has_been_state(Address word) const { return seen_states_[slot_of(word)] == word; }
  std::size_t slot_of(Address word) const;
  void remember_state(Address word);
  void forget_states();
  struct MainThread {
    Address L, G;
    Dialect lua;         // luajit: a row, not what was found
    LuajitLayout found;  // luajit
  };
  // Visits what looks like a main thread until `visit` is false.
  void visit_main_threads(const Memory& memory, const AddressSpace& space,
                          const std::function<bool(const MainThread&)>& visit) const;
  Dialect remember_globals(Address G, const LuajitLayout& layout);
  bool meet(Address word, bool as_before, const ThreadStack& stack, Unknown unknown);
  void collect(const Memory& memory, Unknown unknown);
  void add_candidate(const Memory& memory, Address L, std::span<const std::byte> head);
  Dialect dialect_of(const Memory& memory, Address L, std::span<const std::byte> bytes, Address& G);
  bool worth_reading(Address word) const;
  void note_unreadable(Address word);

  struct Range {
    Address start, end;
    enum class Use : std::uint8_t {
      no_data,
      reserved,
      writable
    } use;  // reserved: not writable when the mappings were read, but may become so
  };
  const Range* range_of(Address word) const;
  std::vector<Range> ranges_;  // ascending; neighbours of one kind joined
  // Pages of reserved ranges that could not be read. They are tried again, after twice as many
  // looks each time.
  struct Unreadable {
    Address page = 0;
    std::uint64_t again_at = 0;  // the look at which it is tried again
    unsigned failures = 0;
  };
  static constexpr std::size_t most_unreadable = 256;
  std::vector<Unreadable> unreadable_ = std::vector<Unreadable>(most_unreadable);  // by hash of the page; of two with
                                                                                   // the same hash the last one
  std::uint64_t looks_ = 0;
  Address lowest_ = 0, highest_ = ~Address{0}, highest_short_ = ~Address{0};  // of writable memory; the last: below 4
                                                                              // GiB
  std::vector<Dialect> rows_;
  bool short_rows_ = false;                     // some row has 32-bit references
  bool short_states_ = false;                   // some state has
  std::unordered_map<Address, Dialect> known_;  // by global_State
  std::deque<LuajitLayout> found_;              // what known_ refers to
  std::vector<Address> seen_states_;            // by hash; 0: none
  std::size_t seen_count_ = 0;
  std::uint64_t generation_ = 1;  // of seen_states_
  Mentions mentions_;
  static constexpr int most_doubts = 100;
  bool doubtful_ = false;  // the last look met what looked like a state of a global_State that is not known, and did
                           // not fit
  int doubts_left_ = most_doubts;
  std::vector<Address> chunk_;                // words to read next
  std::vector<Address>* deferred_ = nullptr;  // of the locate() under way
  std::vector<Candidate> candidates_;
  std::vector<Activation> unprotected_;
  bool guessed_ = false;
};

}  // namespace luaspy
