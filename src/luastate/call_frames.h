#pragma once
// A call as a readable frame.

#include <span>
#include <string>

#include "luastate/names.h"
#include "luastate/native_functions.h"
#include "luastate/walk.h"

namespace luaspy {

// As Names::label(). What LuaJIT calls by its FFI is shown instead of the function that does so.
CallLabel label_call(Names& names, const NativeFunctions& functions, const Names::Context& context, const LuaCall& call,
                     const LuaCall* caller, Address pc);
// A C function without a Lua name gets the name of its symbol, and its module as the file.
Frame frame_of(const CallLabel& label, const NativeFunctions& functions);
// The markers shown outside of a call, innermost first: tail calls, and calls that could not be
// read.
std::span<const Frame> markers_outside(const LuaCall& call);
// The marker for calls left out in the middle of a deep stack. `counted`: with their number.
std::string left_out_text(const LuaWalk& walk, bool counted);

}  // namespace luaspy
