#pragma once
// What a test case says that cannot be made on this machine.

#include <string_view>

namespace luaspy::test {

// The exit status of a test program in which a test case was skipped and none has failed: ctest's SKIP_RETURN_CODE.
inline constexpr int skipped = 77;

// To be called by a test case before it returns early: prints its name, and why it cannot be made here.
void skip(std::string_view why);

}  // namespace luaspy::test
