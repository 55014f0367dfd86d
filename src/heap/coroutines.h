#pragma once
// Every coroutine of every Lua in a process, and where each of them is: found in the collectors'
// lists, read from a copy of one instant.
//
//   learn()    finds the coroutines (coroutine_list.h), looks at each, and so learns which memory that takes
//   keep()     if nothing ran meanwhile: what was read is of one instant
//   copy()     if the target ran: while its running threads stand still, that memory once more, and what is younger
//   than it settle()   when they run again: which of them are there, and the same looks in the copy. False: something
//   was not copied: begin anew report()   what settle() found, with names
//
// learn() follows a list of all objects, which takes some 100 ms for 100 MB: a small heap can be
// learned in the stop, and the answer is exact. Of a big one the stop copies the coroutines only,
// not the heap: their lua_States, calls and stacks, and the functions that they call. What was
// freed and made anew in the same place since it was learned may then be missed.

#include <array>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/frame.h"
#include "heap/coroutine_list.h"
#include "heap/heap_copy.h"
#include "luastate/collector.h"
#include "luastate/coroutine.h"
#include "luastate/locate.h"
#include "luastate/names.h"
#include "luastate/native_functions.h"

namespace luaspy {

struct CoroutineGroup {
  std::int64_t count = 0;
  CoroutineStatus status = CoroutineStatus::dead;
  Stack stack;  // outermost first; of dead ones, and those not started: empty
  Frame began;  // the function that it began with, line: line_defined; an empty name if that is not known
  std::vector<Address> examples;  // lua_States, up to most_examples
  static constexpr std::size_t most_examples = 3;
};

struct StateReport {
  Address G = 0, main = 0;
  std::string lua;  // "Lua 5.4.3-5.4.9"
  CollectorState collector;
  std::int64_t objects = 0;  // in the collector's list, while the target ran
  std::int64_t garbage = 0;  // coroutines in it that the collector knew to be dead, and had not freed yet
  std::int64_t unread = 0;   // coroutines that are there, but whose stack could not be read
  std::int64_t hooked = 0;   // coroutines that have a debug hook, the main thread among them
  std::array<std::int64_t, coroutine_statuses> counts{};  // by status, without the main thread
  CoroutineStatus main_status = CoroutineStatus::dead;    // dead: it is not in any call
  std::vector<CoroutineGroup> groups;                     // those with the most coroutines first
  bool complete = false;                                  // the list was read to its end, and every coroutine
  bool exact = true;  // all of one instant; else the heap was too big to be read in a stop
};

struct CoroutineLimits {
  std::size_t copy_bytes = std::size_t{1} << 30;
  WalkLimits walk{400, 100, true};
  std::size_t most_coroutines = 1 << 20;
};

class Coroutines {
 public:
  using States = std::unordered_map<Address, Dialect>;  // by global_State: LuaReader::global_states()

  // `live` has to outlive this, and so has what the dialects of learn() refer to.
  explicit Coroutines(const Memory& live, CoroutineLimits limits = {})
      : live_(live), limits_(limits), copy_(live, limits.copy_bytes) {}

  void learn(const AddressSpace& space, const States& states);
  // What copy() will read. The stop takes some 0.3 ms per MB.
  std::size_t bytes() const { return copy_.used_bytes(); }
  std::size_t copied_bytes() const { return copy_.copied_bytes(); }
  void keep() { copy_.seal(); }
  void copy();
  // `active`: of each thread, the states that were active on it at that instant, innermost first.
  bool settle(const std::vector<std::vector<Activation>>& active);
  std::vector<StateReport> report(Names& names, const NativeFunctions& functions);

 private:
  using Signature = std::vector<std::uint64_t>;
  struct Group {
    std::int64_t count = 0;
    std::vector<Address> examples;
  };
  struct State {
    Address G = 0;
    Dialect lua;
    CoroutineList list;
    bool whole_list = false;     // it is short: the copy has it
    bool list_complete = false;  // as far as it was read while the target ran, and in the stop
    StateReport report;
    std::map<Signature, Group> groups;
  };

  Active active_in(Address L) const;
  void learn_state(State& state, const AddressSpace& space);
  void learn_coroutines(State& state, std::size_t from);
  void settle_state(State& state);
  void settle_coroutine(State& state, Address L);
  CoroutineGroup describe(const State& state, const Group& group, Names& names, const NativeFunctions& functions);

  const Memory& live_;
  CoroutineLimits limits_;
  HeapCopy copy_;
  std::vector<State> states_;
  std::unordered_map<Address, Active> active_;
  CoroutineLook look_;
};

}  // namespace luaspy
