#pragma once
// x86-64 (AMD64), as Linux and the System V ABI use it.

#include "arch/machine.h"

namespace luaspy::x86_64 {

const Machine& machine();

}  // namespace luaspy::x86_64
