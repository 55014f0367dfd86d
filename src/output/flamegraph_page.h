#pragma once
// The page that shows flame graphs, which flamegraph/join.cmake makes from the files there: the
// parts before the data, between the data and the recording, and after that.

#include <string_view>

namespace luaspy {

extern const std::string_view flamegraph_head, flamegraph_middle, flamegraph_tail;

}  // namespace luaspy
