#pragma once
// Coroutines that wait, as one look at one Lua has found them. They are no samples: nothing runs in them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/sample.h"

namespace luaspy {

// Coroutines of a recording that have a number, and so a track each; others are only counted.
inline constexpr std::uint32_t most_numbered = 200;
// The label that all of them have, as samples of time have it (record --label coroutine).
inline constexpr std::string_view suspended_label = "coroutine";

// Coroutines that began with the same function and wait at the same place.
struct SuspendedGroup {
  std::uint32_t number = 0;  // from 1 on: one coroutine, which keeps it; 0: any others
  StackId stack = empty_stack;
  LabelsId labels = no_labels;
  std::int64_t count = 1;
  std::int64_t longest_ns = 0;  // for how long one of them was there in every look, with the same values on its stack
  RequestIdentity request{};    // for which they wait: no file has it
};

struct SuspendedLook {
  std::int64_t at_ns = 0;      // since the recording began; all Luas that are looked at in turn have the same
  std::int64_t weight_ns = 0;  // how much time it stands for: since the look before
  int pid = 0;
  std::uint64_t program = 0;  // ThreadKey::program
  std::string process;        // its command
  std::uint64_t state = 0;    // the address of the global_State
  std::int64_t unread = 0;    // coroutines that exist, but could not be read
  std::vector<SuspendedGroup> groups;
};

}  // namespace luaspy
