#pragma once
// The Lua half of a look as a value that goes from step to step: Located, made while the thread
// stands still, then Walked. LuaReader makes both.

#include <cstddef>
#include <vector>

#include "base/registers.h"
#include "luastate/locate.h"
#include "luastate/luajit/luajit_state.h"
#include "luastate/walk.h"

namespace luaspy {

// What a look has read, for the steps that come after it. All of it has to live until the last of
// them is done.
struct LookMemory {
  const Registers& registers;
  Locator::ThreadStack stack;  // from sp on
  const Memory& stopped;       // what was read in the stop
  const Memory& objects;       // the same, and where it has nothing, the memory as it is now
};

// Which states run on a thread, as far as the stop has found them.
struct Located {
  std::vector<Activation> active;       // innermost first
  std::vector<Activation> unprotected;  // further ones that may run there without a protected call
  bool guessed = false;                 // `active` is only the first of the states that may run there
  std::vector<Address> deferred;        // words of the stack that may be further ones
  Locator::Mentions mentions;
  bool all = false;  // none was deferred, and the functions that were known have been touched, too
};

// A state and its calls.
struct RunningState {
  Activation activation;
  bool anchored = false;  // found by its anchor; else it may run here, or is only guessed
  LuaWalk walk;
  Address errorJmp = 0;  // PUC: the lua_longjmp of its innermost protected call, on the native stack
  LuajitState luajit;
};

// The states that run on a thread, with their calls. LuaReader::walk() makes it;
// LuaReader::settle() corrects it by the native frames.
struct Walked {
  // A run of native frames that belong to one state, innermost first.
  struct Part {
    std::size_t state;  // index into `states`
    Address boundary;   // sp of its frames is below
  };
  std::vector<RunningState> states;
  std::size_t walked = 0;   // of `states`: these were walked; what follows is room
  std::size_t running = 0;  // of them: these run on the thread, innermost first
  std::vector<Part> parts;  // of the native stack, innermost first
  bool unclaimed = false;   // a frame of the VM belongs to none of them

  std::span<const RunningState> on_thread() const { return std::span(states).first(running); }
  // The same, without their calls.
  std::vector<Activation> active() const;
  // The C frames that they have on the native stack (LuaJIT).
  std::vector<Address> cframes() const;
  // Does the innermost one run a trace (LuaJIT)?
  bool on_trace() const {
    return running != 0 && states[0].activation.lua.luajit != nullptr && states[0].luajit.jit_base != 0;
  }
  // The entries of the C functions that are being called.
  std::vector<Address> c_entries() const;
};

}  // namespace luaspy
