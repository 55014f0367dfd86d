#pragma once
// The page that shows flame graphs, which flamegraph/join.cmake makes from the files there: the
// part before the data and the part after it.

#include <string_view>

namespace luaspy {

extern const std::string_view flamegraph_head, flamegraph_tail;

}  // namespace luaspy
