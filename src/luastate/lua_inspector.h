#pragma once
// What is known about a target's Luas, and the Lua half of a look: which states run on a thread and
// what they are calling. It works on memory and native frames, not on a process, so saved stops and
// core files use it, too. The steps of a look are values (running.h).

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/sample.h"
#include "luastate/function_copies.h"
#include "luastate/known_functions.h"
#include "luastate/names.h"
#include "luastate/native_functions.h"
#include "luastate/running.h"
#include "luastate/stack_walker.h"
#include "luastate/state_places.h"

namespace luaspy {

class LuaInspector {
 public:
  // `live`: the target's memory as it is now. `objects`: the same, but it may keep what was read
  // since the look began. `machine`: its processor. They must outlive the reader.
  LuaInspector(const Memory& live, const Memory& objects, WalkLimits limits, const Machine& machine);

  // Sets the layouts to try, best first. Forgets what was known about states.
  void try_layouts(std::vector<const Lua*> layouts);

  // The currently known mappings of the target, which say where a lua_State can be.
  void set_space(const AddressSpace& space) { locator_.set_space(space); }

  // In the stop: finds the states, and touches what their walks and heaps() will need. `all`: what was
  // not known before is read, too.
  // Only one thread at a time may call this, but another thread may run the steps after a stop
  // meanwhile.
  void locate(const Locator::StoppedThread& thread, const Locator::LastLook& last, bool all, Located& located,
              Locator::Effort effort = Locator::Effort::complete);
  // Right after the stop: touches what locate() left out because the functions were known.
  // thread.memory: the snapshot, then the memory as it is now.
  void prefetch(const Locator::StoppedThread& thread, const Located& located) const {
    prefetch(thread, located, nullptr, nullptr);
  }

  // Everything below is called after the stop, in this order. Did the stop miss a state that runs
  // there? `stack`: as it was then. The missed states are added to located.mentions.
  bool missed(const Locator::ThreadStack& stack, Located& located) const;
  // PUC's calls, and for LuaJIT what the native frames need. `room`: a value no longer needed,
  // whose memory is reused.
  Walked walk(const Located& located, const LookMemory& look, Walked room = {});
  // LuaJIT: the trace of one of these states (or of the given one) that contains `pc`, nullptr if
  // there is none. Valid until the next call.
  const Trace* trace_at(const Walked& walked, Address pc);
  const Trace* trace_at(const ActiveState& activation, Address pc) {
    return reader_of(activation).trace_at(activation, pc);
  }
  // Then the native frames are added. LuaJIT's calls are found: only now is it known where the
  // innermost frame is, and what a trace has inlined. For PUC: which frames belong to states
  // without a protected call, and whether the innermost call has begun. Call again if the native
  // frames change.
  void match_natives(Walked& walked, const std::vector<NativeFrame>& natives, const NativeFunctions& functions,
                     const LookMemory& look);
  // Call after the walks, if not all functions were touched. `stopped`: what was read in the stop. Has a
  // collector, since then, come to where it frees what the stop has seen (lgc.c and lj_gc.c, atomic)? Two
  // collections that leave no trace of themselves are not seen (shows_atomic_step).
  // A known function may then be gone, and what is there now may be what had been there before.
  bool may_have_freed(const Walked& walked, const Memory& stopped) const;
  // Names functions by the copies that were made of them in the stop, and learns whether such copies are
  // needed. Call before functions are asked for.
  void use_copies(Located& located);
  // Copies functions in every stop, for a caller that looks only once.
  void copy_functions_always() { copy_policy_.copy_always(); }

  // Call after the walks. `all`: all functions were touched and become known. Otherwise: are the
  // known ones unchanged?
  bool confirm_functions(const Walked& walked, bool all);
  // What the innermost state was doing.
  VmState vm_state(const Walked& walked, const std::vector<NativeFrame>& natives,
                   const NativeFunctions& functions) const;

  // The heaps of the states on the thread, one for each global_State: what `stopped`, the memory that
  // was read in the stop, has of them.
  static std::vector<HeapReading> heaps(const Walked& walked, const Memory& stopped);

  // How the implementation reads a state.
  StackWalker& reader_of(const ActiveState& state) const {
    return *readers_[static_cast<std::size_t>(state.lua->kind())];
  }

  // Every known Lua of the process, by its global_State: those whose states have run on the stacks
  // looked at, and after find_states() those that no stack mentions. Do not call while another
  // thread may be in locate().
  const std::unordered_map<Address, const Lua*>& global_states() const { return locator_.global_states(); }
  void find_states(const AddressSpace& space, std::uint64_t most = Locator::most_searched) {
    locator_.find_states(names_.memory(), space, most);
  }
  Names& names() { return names_; }
  bool counts_left_out() const { return limits_.count_left_out; }
  bool saw_state() const { return !seen_.empty(); }
  // Searches all of the target's writable memory for a main thread.
  bool finds_state(const AddressSpace& space) const { return locator_.find_main_thread(names_.memory(), space) != 0; }
  std::vector<std::string> layout_names() const;  // "Lua 5.4.3-5.4.9": the layouts used by the states seen

 private:
  WalkLimits limits_of(std::size_t state) const;  // `state` counts from the innermost
  void prefetch(const Locator::StoppedThread& thread, const Located& located, const KnownFunctions* known,
                FunctionCopier* copier) const;
  static void prefetch_heaps(const Memory& memory, const Located& located);
  void add_state(Walked& walked, const LookMemory& look, const ActiveState& activation, bool anchored) const;

  Locator locator_;                               // changed by locate()
  std::unordered_map<Address, const Lua*> seen_;  // by global_State: the states that were walked
  StatePlaces state_places_;
  Names names_;
  std::array<std::unique_ptr<StackWalker>, lua_kinds> readers_;  // by Lua::kind()
  KnownFunctions known_functions_;
  CopyPolicy copy_policy_;
  LastingFunctions lasting_functions_;
  WalkLimits limits_;
};

}  // namespace luaspy
