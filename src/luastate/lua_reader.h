#pragma once
// What is known of a target's Luas, and the Lua half of a look: which states run on a thread and
// what they are calling. It knows memory and native frames, no process: saved stops and core files
// take the same way. A look's steps are values (running.h).

#include <string>
#include <unordered_map>
#include <vector>

#include "base/sample.h"
#include "luastate/known_functions.h"
#include "luastate/luajit/luajit_reader.h"
#include "luastate/names.h"
#include "luastate/native_functions.h"
#include "luastate/puc/live_pc.h"
#include "luastate/running.h"
#include "luastate/state_places.h"

namespace luaspy {

class LuaReader {
 public:
  // `live`: the target's memory as it is now. `objects`: the same, but what was read since the look
  // began may be kept. Both have to outlive the reader.
  LuaReader(const Memory& live, const Memory& objects, WalkLimits limits)
      : names_(live), luajit_(objects), limits_(limits) {}

  // Which rows to try, best first; what was known of states before is forgotten.
  void try_rows(std::vector<Dialect> rows);

  // The target's mappings, as far as they are known now: where a lua_State can be.
  void know(const AddressSpace& space) { locator_.know(space); }

  // In the stop: finds the states, and touches what their walks will need. `memory` is the
  // snapshot; `stack` the thread's stack in it. `before`, `mentions`: the stack and what of it was
  // found at the look before, if there was one. `all`: nothing is deferred. One thread at a time
  // may do this, while another one is at what comes after a stop.
  void locate(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack,
              const Locator::ThreadStack& before, bool all, Located& located,
              const Locator::Mentions* mentions = nullptr);
  // Right after it: touches what locate() did not, as the functions were known. `memory`: the
  // snapshot, and then the memory as it is now.
  void touch(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack,
             const Located& located) const {
    touch(memory, registers, stack, located, nullptr);
  }

  // All that follows comes after the stop, in this order. Did the stop miss a state that runs
  // there?
  bool missed(const Located& located) const;
  // PUC's calls, and what of LuaJIT's is needed for the native frames. `room`: a value that is not
  // needed any more, for its memory.
  Walked walk(const Located& located, const LookMemory& look, Walked room = {});
  // LuaJIT: the trace of one of these states, or of one, that has `pc`, nullptr if there is none.
  // Valid until the next call.
  const Trace* trace_at(const Walked& walked, Address pc);
  const Trace* trace_at(const Activation& activation, Address pc) { return luajit_.trace_at(activation, pc); }
  // Then, with the native frames, LuaJIT's calls: where the innermost frame is, and what a trace
  // has inlined, is known only now. Of PUC's, which frames are of states without a protected call,
  // and whether the innermost call has begun. Again, if the native frames turn out to be others.
  void settle(Walked& walked, const std::vector<NativeFrame>& natives, const NativeFunctions& functions,
              const LookMemory& look);
  // The walks are made. `all` were touched: their functions are known from now on. Else: are those
  // that were known the same still?
  bool confirm_functions(const Walked& walked, bool all);
  // What the innermost state was doing.
  VmState vm_state(const Walked& walked, const std::vector<NativeFrame>& natives,
                   const NativeFunctions& functions) const;

  // Every Lua of the process that is known, by its global_State: those whose states have run on the
  // stacks looked at, and after find_states() those that no stack mentions. Not while another
  // thread may be in locate().
  const std::unordered_map<Address, Dialect>& global_states() const { return locator_.global_states(); }
  void find_states(const AddressSpace& space) { locator_.find_states(names_.memory(), space); }
  Names& names() { return names_; }
  LivePc& live_pc() { return live_pc_; }
  bool counts_left_out() const { return limits_.count_left_out; }
  bool saw_state() const { return !seen_.empty(); }
  // Searches all of the target's writable memory for a main thread.
  bool finds_state(const AddressSpace& space) const { return locator_.find_main_thread(names_.memory(), space) != 0; }
  std::vector<std::string> rows() const;  // "Lua 5.4.3-5.4.9": in use, by the states seen

 private:
  WalkLimits limits_of(std::size_t state) const;  // counted from the innermost
  void touch(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack,
             const Located& located, const KnownFunctions* known) const;
  void add_state(Walked& walked, const LookMemory& look, const Activation& activation, bool anchored) const;

  Locator locator_;                            // locate() changes it
  std::unordered_map<Address, Dialect> seen_;  // by global_State: of the states that were walked
  LivePc live_pc_;
  StatePlaces state_places_;
  Names names_;
  LuajitReader luajit_;
  KnownFunctions known_functions_;
  WalkLimits limits_;
};

}  // namespace luaspy
