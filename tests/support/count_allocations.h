#pragma once
// Counts calls of operator new. A program that links count_allocations.cpp has its operators.

#include <cstdint>

namespace luaspy::test {

// Of this thread, since it began.
std::int64_t allocations();

}  // namespace luaspy::test
