#pragma once
// AArch64: its registers and calls, for saved stops. luaspy does not run on it: how its kernel hands out
// registers is not described, nor is what else instructions do.

#include "arch/machine.h"

namespace luaspy::aarch64 {

const Machine& machine();

}  // namespace luaspy::aarch64
