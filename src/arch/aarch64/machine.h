#pragma once
// AArch64: its registers only, for saved stops. Its instructions cannot be read, and luaspy does not
// run on it.

#include "arch/machine.h"

namespace luaspy::aarch64 {

const Machine& machine();

}  // namespace luaspy::aarch64
