#pragma once
// Assigns native frames to the states that run on a thread. A state called by a protected call has
// an anchor on the stack (luastate/locate.h): the frames up to it belong to the state, if all other
// states are protected, too. A state that a host called with a plain lua_call has no anchor. Its
// luaV_execute frames show their state, and C functions that only this state has called belong to
// it.
//
//      sp ▼ lower addresses                                                 higher ▲
//        luaV_execute(B)  lua_call  C function of A  luaV_execute(A)  [lj of A]  lua_pcall  main
//        └── no anchor ─┘           └── frames of A ───────────────┘

#include "luastate/native_functions.h"
#include "luastate/running.h"
#include "luastate/state_places.h"

namespace luaspy {

// Makes `parts` of the states and moves those that run on the thread to the front. `stack`: the
// memory read in the stop. `places` learns from it.
void assign_owners(Walked& walked, StatePlaces& places, const std::vector<NativeFrame>& natives,
                   const NativeFunctions& functions, const Memory& stack);

}  // namespace luaspy
