#pragma once

#include <string>

namespace luaspy {

// The text of --version, also printed at the beginning of a report: luaspy's version, how it was
// built, and which Luas it reads.
std::string version_text();

}  // namespace luaspy
