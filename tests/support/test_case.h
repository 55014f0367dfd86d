#pragma once
// The test case that runs.

#include <string_view>

namespace luaspy::test {

bool has_tag(std::string_view tag);  // without the brackets

}  // namespace luaspy::test
