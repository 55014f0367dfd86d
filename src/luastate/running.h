#pragma once
// The Lua half of a look as a value for each step: Located is made while the thread is stopped,
// then Walked. LuaInspector makes both.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/registers.h"
#include "luastate/function_copies.h"
#include "luastate/locate.h"
#include "luastate/walk.h"

namespace luaspy {

// What a look has read, for the later steps. All of it must live until the last of them is done.
struct LookMemory {
  const Registers& registers;
  Locator::ThreadStack stack;  // from sp on
  const Memory& stopped;       // what was read in the stop
  const Memory& objects;       // the same, then the memory as it is now
};

// The states that run on a thread, as far as the stop has found them.
struct Located {
  std::vector<ActiveState> active;       // innermost first
  std::vector<ActiveState> unprotected;  // other states that may run there without a protected call
  bool guessed = false;                  // `active` is only the first of the states that may run there
  std::vector<Address> deferred;         // words of the stack that may be further states
  Locator::LeftOut left_out;             // what else may be
  Locator::Mentions mentions;
  bool all = false;  // nothing was deferred but what is beyond the bounds, and known functions were touched, too
  bool all_functions = false;        // known functions were touched, too, and copied
  std::vector<FunctionCopy> copies;  // of functions that may be gone by now
};

// What an implementation notes about a state, for its later steps.
struct StateNotes {
  virtual ~StateNotes() = default;
  // LuaJIT: its C frames on the native stack, innermost first.
  virtual std::span<const Address> vm_frames() const { return {}; }
  virtual bool on_trace() const { return false; }
};

// A state and its calls.
struct RunningState {
  ActiveState activation;
  bool anchored = false;  // found by its anchor; false: it may run here, or is only guessed
  LuaWalk walk;
  std::unique_ptr<StateNotes> notes;  // set by StackWalker::read(), by which they may be reused
};

// The states that run on a thread, with their calls. LuaInspector::walk() makes it;
// LuaInspector::match_natives() corrects it with the native frames.
struct Walked {
  // A run of native frames that belong to one state, innermost first.
  struct Part {
    std::size_t state;  // index into `states`
    Address boundary;   // its frames have a lower sp
  };
  std::vector<RunningState> states;
  std::size_t walked = 0;   // the first `walked` of `states` are valid; the others only keep memory
  std::size_t running = 0;  // the first `running` of these run on the thread, innermost first
  std::vector<Part> parts;  // of the native stack, innermost first
  bool unclaimed = false;   // a frame of the VM belongs to no state

  // Removes what does not run on the thread, whose native frames lie from `sp` up to `end`: a copy of a state
  // among them (Lua allocates its states: lstate.c, lua_newstate), and, if the stack `ends_there`, what is
  // anchored at `end` or above, on another stack.
  void drop_strangers(Address sp, Address end, bool ends_there);
  std::span<const RunningState> on_thread() const { return std::span(states).first(running); }
  // The states on the thread without their calls.
  std::vector<ActiveState> active() const;
  // Their C frames on the native stack (LuaJIT).
  std::vector<Address> vm_frames() const;
  // Does the innermost state run a trace (LuaJIT)?
  bool on_trace() const { return running != 0 && states[0].notes->on_trace(); }
  // The entries of the C functions that are being called.
  std::vector<Address> c_entries() const;
};

}  // namespace luaspy
