#pragma once
// Suspended coroutines, as tables: how many wait where, and for how long the same one was seen there.

#include <string>
#include <vector>

#include "report/text_style.h"

namespace luaspy {

// Coroutines that began with one function and wait at one place.
struct SuspendedRow {
  std::string began;  // "": not known
  StackId stack = empty_stack;
  double average = 0;  // how many
  std::int64_t most = 0, longest_ns = 0;
};
// Of a profile of suspended coroutines. Those of which most wait first.
std::vector<SuspendedRow> suspended_rows(const Profile& profile);

// By the place where they wait, and by the function that they began with.
std::string suspended_text(const Profile& profile, const TextStyle& style);

}  // namespace luaspy
