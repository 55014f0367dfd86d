#pragma once
// Folded stacks: "main;f (a.lua:1);g (a.lua:9) 42", a line for each distinct stack. The number
// counts its samples; in a profile of bytes or objects it is their weight.

#include "output/format.h"

namespace luaspy {

void write_folded(const Profile& profile, const WriteOptions& options, std::ostream& out);

}  // namespace luaspy
