#pragma once
// Which native frames belong to which of the states that run on a thread. A state that was called
// by a protected call has an anchor on the stack (luastate/locate.h): the frames up to it are its
// own, as long as all others are protected, too. One that a host has called by lua_call alone has
// none; its frames of luaV_execute are asked whose they are, and C functions that only it has
// called are its own.
//
//      sp ▼ lower addresses                                                 higher ▲
//        luaV_execute(B)  lua_call  C function of A  luaV_execute(A)  [lj of A]  lua_pcall  main
//        └── no anchor ─┘           └── frames of A ───────────────┘

#include "luastate/native_functions.h"
#include "luastate/running.h"
#include "luastate/state_places.h"

namespace luaspy {

// Makes `parts` of the states and puts those first that run on the thread. `stack`: what was read
// in the stop. `places` learns of it.
void settle_owners(Walked& walked, StatePlaces& places, const std::vector<NativeFrame>& natives,
                   const NativeFunctions& functions, const Memory& stack);

}  // namespace luaspy
