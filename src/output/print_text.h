#pragma once
// Text for people on standard output.

#include <string>

#include "base/result.h"

namespace luaspy {

// On a terminal, lines are as wide as it is, and what cannot be seen is not written.
Result<void> print_text(const std::string& text);

}  // namespace luaspy
