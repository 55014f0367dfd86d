#pragma once
// Every coroutine of every Lua in a process, and where each of them is. They are found in the
// collectors' lists and read from a copy of one instant.
//
//   learn()   finds the coroutines (coroutine_list.h) and looks at each: this shows which memory
//             is needed
//   keep()    if nothing ran meanwhile: what was read is already of one instant
//   copy()    if the target ran: while its running threads are stopped, copies that memory again,
//             and reads newer coroutines
//   confirm() when they run again: finds out which coroutines still exist and repeats the looks,
//             in the copy. False: something was not copied; start again
//   report()  the result of confirm(), with names
//
// learn() follows a list of all objects, which takes some 100 ms for 100 MB. A small heap can be
// learned in the stop, and the result is exact. For a big heap, the stop copies only the
// coroutines: their lua_States, calls and stacks, and the functions that they call. A coroutine
// that was freed and replaced by a new one at the same address after learn() may then be missed.

#include <array>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/frame.h"
#include "heap/coroutine_list.h"
#include "heap/coroutine_place.h"
#include "heap/heap_copy.h"
#include "heap/state_report.h"
#include "luastate/collector.h"
#include "luastate/coroutine.h"
#include "luastate/locate.h"
#include "luastate/names.h"
#include "luastate/native_functions.h"
#include "luastate/variables.h"

namespace luaspy {

struct CoroutineLimits {
  std::size_t copy_bytes = std::size_t{1} << 30;
  WalkLimits walk{400, 100, true};
  std::size_t most_coroutines = 1 << 20;
  // Variables of how many coroutines of a group, and of all, are read; 0: of none.
  std::size_t detailed = 0, detailed_of_all = 200;
  ValueLimits values{};
  CountingRoom room{1 << 10};  // of each of them, because the program may stand still meanwhile
};

class Coroutines {
 public:
  using States = std::unordered_map<Address, const Lua*>;  // by global_State: LuaInspector::global_states()

  // `live` and `names` must outlive this. `names`: of the same target; needed for variables only.
  explicit Coroutines(const Memory& live, const CoroutineLimits& limits = {}, Names* names = nullptr)
      : live_(live), limits_(limits), names_(names), copy_(live, limits.copy_bytes) {}

  // `told`, if set, is called now and then with how many objects of a Lua were seen.
  void find(const AddressSpace& space, const States& states, const std::function<void(std::int64_t)>& told = {});
  // The size of what copy() will read. The stop takes some 0.3 ms per MB.
  std::size_t bytes() const { return copy_.used_bytes(); }
  std::size_t copied_bytes() const { return copy_.copied_bytes(); }
  void keep() { copy_.seal(); }
  void copy();
  // `active`: for each thread, the states that were active on it at that instant, innermost first.
  bool confirm(const std::vector<std::vector<ActiveState>>& active);
  std::vector<StateReport> report(Names& names, const NativeFunctions& functions);

 private:
  using Signature = CoroutineSignature;
  struct Group {
    std::int64_t count = 0;
    std::vector<Address> examples, detailed;
    std::vector<std::string> errors;
  };
  struct State {
    Address G = 0;
    const Lua* lua;
    CoroutineList list;
    bool whole_list = false;     // the list is short, so the copy contains it
    bool list_complete = false;  // as far as it was read while the target ran and in the stop
    StateReport report;
    std::map<Signature, Group> groups;
  };

  Active active_in(Address L) const;
  void find_state(State& state, const AddressSpace& space, const std::function<void(std::int64_t)>& told);
  void find_coroutines(State& state, std::size_t from);
  bool wants_details(std::size_t of_group, std::size_t of_all) const;
  void confirm_state(State& state);
  void confirm_coroutine(State& state, Address L);
  CoroutineGroup describe(const State& state, const Group& group, Names& names, const NativeFunctions& functions);

  const Memory& live_;
  CoroutineLimits limits_;
  Names* names_;
  HeapCopy copy_;
  std::vector<State> states_;
  std::unordered_map<Address, Active> active_;
  CoroutineLook look_;
  std::map<Signature, std::size_t> learned_;  // of how many coroutines the variables were read
  std::size_t learned_of_all_ = 0, detailed_of_all_ = 0;
};

}  // namespace luaspy
