#pragma once

#include <string>

namespace luaspy {

// What --version says, and a report begins with: this luaspy, how it was built, and which Luas it
// reads.
std::string version_text();

}  // namespace luaspy
