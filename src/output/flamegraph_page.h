#pragma once
// The page that shows flame graphs, as flamegraph/join.cmake makes it of the files there: what
// comes before the data, and after it.

#include <string_view>

namespace luaspy {

extern const std::string_view flamegraph_head, flamegraph_tail;

}  // namespace luaspy
