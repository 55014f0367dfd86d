#pragma once
// What dump prints for people.

#include <string>

#include "base/paint.h"
#include "dump/movement.h"

namespace luaspy {

std::string to_text(const ProcessLook& look, bool with_coroutines, const Paint& paint = Paint());
// A look after `before`; a thread that has not moved since then takes one line.
std::string to_text(const ProcessLook& look, const ProcessLook& before, bool with_coroutines,
                    const Paint& paint = Paint());
// What moved in `looks`, two or more.
std::string to_text(const std::vector<Movement>& movements, const std::vector<ProcessLook>& looks);

}  // namespace luaspy
