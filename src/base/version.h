#pragma once

#include <string>
#include <string_view>

namespace luaspy {

extern const std::string_view version;   // "0.1.0": the project's, in CMakeLists.txt

// What --version says: this, the build, and which Luas it reads.
std::string version_text();

}  // namespace luaspy
