#pragma once
// Some looks at the threads of a process, for a report.

#include <set>

#include "doctor/facts.h"

namespace luaspy {

class Session;

inline constexpr std::size_t shown_at_each_end = 30;  // native frames of a deep stack

struct ThreadLooks {
  std::vector<ThreadFacts> threads;  // the first 64
  std::size_t left_out = 0;          // threads
  std::set<Address> words;           // of their stacks, that could point to a lua_State
  pid_t with_lua = 0;                // the first thread that has a state
  pid_t any = 0;
};

// Up to three looks at each thread. It is stopped for each, unless it sleeps.
ThreadLooks look_at_threads(Session& session);

}  // namespace luaspy
