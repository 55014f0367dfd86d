#pragma once
// How a person reads a native function.

#include "base/frame.h"
#include "unwind/module.h"

namespace luaspy {

// By symbol, else by module and the function's start in it, else by module. Never by a raw pc, so
// that samples of one function add up.
Frame native_name(const Modules& modules, const NativeFrame& frame);

// A symbol as it stands in the source, without symbol versions and parameters.
std::string demangled(std::string symbol);

}  // namespace luaspy
