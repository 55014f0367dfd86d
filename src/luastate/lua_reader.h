#pragma once
// The Lua half of a sample: which states run on a thread and what they are calling, read in the stop; and, when the thread runs
// again, the names of it all. It knows memory and native frames, no process: saved stops take the same way.

#include <vector>

#include "luastate/native_functions.h"
#include "luastate/puc/live_pc.h"
#include "luastate/locate.h"
#include "luastate/luajit/luajit_reader.h"
#include "luastate/names.h"
#include "stack/merge.h"
#include "base/sample.h"
#include "luastate/state_places.h"

namespace luaspy {

// A call as a frame. A C function that Lua has no name for gets that of its symbol, and its file is its module.
Frame label_call(Names& names, const Core& core, const Names::Context& context, const LuaCall& call, const LuaCall* caller, Address pc);
// What is shown outside of a call, innermost first: tail calls, what could not be read.
void add_markers(const LuaCall& call, Stack& stack);
Frame marker(std::string text);
std::string left_out_text(const LuaWalk& walk, bool counted);

class LuaReader {
 public:
  // `live`: the target's memory as it is now. `objects`: the same, but what was read since the look began may be kept. Both have to outlive
  // the reader.
  LuaReader(const Memory& live, const Memory& objects, WalkLimits limits) : names_(live), luajit_(objects), limits_(limits) {}

  // Which rows to try, best first; what was known of states before is forgotten.
  void try_rows(std::vector<Dialect> rows);

  // The target's mappings, as far as they are known now: where a lua_State can be.
  void know(const AddressSpace& space) { locator_.know(space); }

  // Which states run on a thread, as far as the stop has found them.
  struct Found {
    std::vector<Activation> active;        // innermost first
    std::vector<Activation> unprotected;   // further ones that may run there without a protected call
    bool guessed = false;                  // `active` is only the first of the states that may run there
    std::vector<Address> deferred;    // words of the stack that may be further ones
    Locator::Mentions mentions;
    bool all = false;                 // none was deferred, and the functions that were known have been touched, too
  };
  // In the stop: finds them, and touches what their walks will need. `memory` is the snapshot; `stack` the thread's stack in it. One thread at a time may
  // do this, while another one is at what comes after a stop.
  void read(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack, const Locator::ThreadStack& before,
            bool all, Found& found, const Locator::Mentions* mentions = nullptr);
  // Right after it: touches what read() did not, as the functions were known. `memory`: the snapshot, and then the memory as it is now.
  void touch(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack, const Found& found) const { touch(memory, registers, stack, found, nullptr); }

  // After it. Did the stop miss a state that runs there?
  bool missed(const Found& found) const;
  // PUC's calls, and what of LuaJIT's is needed for the native frames. `objects`: the snapshot, and where it has nothing, the memory as it is now.
  void walk(const Found& found, const Memory& memory, const Memory& objects, const Registers& registers, const Locator::ThreadStack& stack);
  // What the native frames need: LuaJIT's C frames of the VM, and the trace that has `pc`, nullptr if there is none.
  std::vector<Address> cframes() const;
  const Trace* trace_at(Address pc);
  bool on_trace() const { return state_count_ != 0 && states_[0].activation.lua.luajit != nullptr && states_[0].luajit.jit_base != 0; }
  // Then, with them, LuaJIT's calls: where the innermost frame is, and what a trace has inlined, is known only now. Of PUC's, which frames are of
  // states without a protected call, and whether the innermost call has begun.
  void refine(const std::vector<NativeFrame>& natives, const Registers& registers, const Core& core, const Memory& objects);
  // The walks are made. `all` were touched: their functions are known from now on. Else: are those that were known the same still?
  bool settle_functions(bool all);
  std::vector<Segment> segments() const;
  // What the walks met, added to `quality`.
  void judge(const Merged& merged, Quality& quality) const;
  // The stack, outermost first. `memory` is the snapshot that read() had.
  Stack label(const Merged& merged, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory) {
    find_calls(merged, natives, core, memory);
    return name_calls(merged, natives, core, memory);
  }
  // The same in two steps: which call each frame is, and where (labelled()); and what they are called, which may take longer than a thread should stand still.
  void find_calls(const Merged& merged, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory);
  Stack name_calls(const Merged& merged, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory);

  // What each frame of the stack is, outermost first; of those that are no call, `state` is nullptr. Valid until the next walk().
  struct Labelled {
    const Activation* state = nullptr;
    const LuaWalk* walk = nullptr;
    std::size_t call = 0;   // index into walk->calls
    Address pc = 0;         // Lua: the next instruction
  };
  const std::vector<Labelled>& labelled() const { return labelled_; }

  VmState vm_state(const std::vector<NativeFrame>& natives, const Core& core) const;

  struct State {
    Activation activation;
    bool anchored = false;   // found by its anchor; else it may run here, or is only guessed
    LuaWalk walk;
    Address errorJmp = 0;   // PUC: the lua_longjmp of its innermost protected call, on the native stack
    LuajitReader::State luajit;
  };
  // A run of native frames that belong to one state, innermost first.
  struct Part {
    std::size_t state;   // index into the states
    Address boundary;    // sp of its frames is below
  };
  // What name_calls() goes by, so that names can wait while other threads are looked at. Swaps it with the reader's own.
  struct Unnamed {
    std::vector<State> states;
    std::size_t walked_count = 0, state_count = 0;
    std::vector<Part> parts;
    std::vector<Labelled> labelled;
  };
  void swap(Unnamed& look) {
    states_.swap(look.states);
    std::swap(walked_count_, look.walked_count);
    std::swap(state_count_, look.state_count);
    parts_.swap(look.parts);
    labelled_.swap(look.labelled);
  }

  // The states that run on the thread, innermost first: of the last walk(), and after refine() with those that are not protected.
  const std::vector<Activation>& active() const { return active_; }
  // The entries of the C functions that are being called.
  std::vector<Address> c_entries() const;
  // Every Lua of the process that is known, by its global_State: those whose states have run on the stacks looked at, and after find_states()
  // those that no stack mentions. Not while another thread may be in read().
  const std::unordered_map<Address, Dialect>& global_states() const { return locator_.global_states(); }
  void find_states(const AddressSpace& space) { locator_.find_states(names_.memory(), space); }
  Names& names() { return names_; }
  bool saw_state() const { return !seen_.empty(); }
  // Searches all of the target's writable memory for a main thread.
  bool finds_state(const AddressSpace& space) const { return locator_.find_main_thread(names_.memory(), space) != 0; }
  std::vector<std::string> rows() const;   // "Lua 5.4.3-5.4.9": in use, by the states seen

 private:
  WalkLimits limits_of(std::size_t state) const;   // counted from the innermost
  void touch(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack, const Found& found, const KnownFunctions* known) const;
  struct Claim {
    Address sp;
    std::size_t state, native;   // native: index of the frame; `no_frame` for a state that is anchored there and has none
  };
  static constexpr std::size_t no_frame = ~std::size_t{0};
  void add_state(const Memory& memory, const Memory& objects, const Registers& registers, const Locator::ThreadStack& stack, const Activation& activation,
                 bool anchored);
  void settle_parts(const std::vector<NativeFrame>& natives, const Core& core, const Memory& stack);
  bool parts_are_settled(const std::vector<NativeFrame>& natives, const Core& core);
  std::vector<Claim> claims(const std::vector<NativeFrame>& natives, const Core& core, const Memory& stack);
  std::size_t region_of(const NativeFrame& native) const;
  std::size_t owner_by_entry(const NativeFrame& native) const;
  void make_parts(std::vector<Claim>& claims, const std::vector<NativeFrame>& natives, const Core& core);
  void put_in_order();
  const State& state_of(const MergedFrame& frame) const { return states_[parts_[frame.segment].state]; }
  bool collects(const std::vector<NativeFrame>& natives, const Core& core) const;
  void learn_pcs(const Merged& merged, const std::vector<NativeFrame>& natives, const Memory& memory);
  void settle_innermost(State& state, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory);
  Address pc_of(const MergedFrame& frame, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory);
  Frame label_call(const MergedFrame& frame, Address pc, const Core& core, const Memory& memory);
  Frame label_native(const NativeFrame& native, const Core& core);

  Locator locator_;                              // read() changes it
  std::unordered_map<Address, Dialect> seen_;    // by global_State: of the states that were walked
  LivePc live_pc_;
  StatePlaces state_places_;
  Names names_;
  LuajitReader luajit_;
  KnownFunctions known_functions_;
  WalkLimits limits_;
  // Of the sample being made; they keep their room from one to the next.
  std::vector<Activation> active_;
  std::vector<State> states_;
  std::size_t walked_count_ = 0;   // of them have been walked
  std::size_t state_count_ = 0;    // of these run on the thread, innermost first
  std::vector<Part> parts_;
  bool unclaimed_ = false;         // a frame of the VM belongs to none of them
  std::vector<Labelled> labelled_;
};

}  // namespace luaspy
