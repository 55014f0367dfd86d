#pragma once

#include <string_view>

namespace luaspy {

extern const std::string_view version;  // "0.1.0": the project's, in CMakeLists.txt
extern const std::string_view build;    // lines of text: the compiler, the libraries

}  // namespace luaspy
