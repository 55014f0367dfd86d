#pragma once
// What is reported of a Lua and its coroutines (coroutines.h), as values.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/frame.h"
#include "luastate/collector_state.h"
#include "luastate/reported.h"

namespace luaspy {

// One coroutine of a group, with its variables.
struct CoroutineDetail {
  Address L = 0;
  std::vector<CallVariables> variables;  // as CoroutineGroup::stack
};

struct CoroutineGroup {
  std::int64_t count = 0;
  CoroutineStatus status = CoroutineStatus::dead;
  Stack stack;  // outermost first; empty if dead or not started
  // The function that it began with, and its line_defined as the line. An empty name: not known.
  Frame began;
  std::vector<std::string> errors;       // failed: different ones, up to most_errors; printable
  std::vector<CoroutineDetail> details;  // if variables were requested: up to CoroutineLimits::detailed
  std::vector<Address> examples;         // lua_States, up to most_examples
  static constexpr std::size_t most_examples = 3, most_errors = 8;
};

struct StateReport {
  Address G = 0, main = 0;
  std::string lua;  // "Lua 5.4.3-5.4.9"
  CollectorState collector;
  std::int64_t objects = 0;                               // in the collector's list, counted while the target ran
  std::int64_t garbage = 0;                               // coroutines in it that are dead, but not freed yet
  std::int64_t unread = 0;                                // coroutines that exist, but whose stack could not be read
  std::int64_t hooked = 0;                                // coroutines with a debug hook, including the main thread
  std::array<std::int64_t, coroutine_statuses> counts{};  // by status, without the main thread
  CoroutineStatus main_status = CoroutineStatus::dead;    // dead: not in any call
  std::vector<CoroutineGroup> groups;                     // those with the most coroutines first
  bool complete = false;                                  // the whole list and every coroutine were read
  bool exact = true;  // all from one instant; false: the heap was too big to be read in a stop
};

}  // namespace luaspy
