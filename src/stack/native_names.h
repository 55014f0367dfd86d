#pragma once
// Readable names of native functions.

#include "base/frame.h"
#include "unwind/module.h"

namespace luaspy {

// The symbol; without one, the module and the function's start in it; without that, the module.
// Never a raw pc, so that samples of one function add up.
Frame native_name(const Modules& modules, const NativeFrame& frame);

// A symbol as written in the source, without symbol version and parameters.
std::string demangled(std::string symbol);

}  // namespace luaspy
