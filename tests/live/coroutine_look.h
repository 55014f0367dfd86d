#pragma once
// A look at the coroutines of a process, as a command makes it, except for several running threads:
// here only the first one is stopped.

#include <memory>

#include "attach/held_thread.h"
#include "heap/coroutines.h"
#include "stack/stack_reader.h"

namespace luaspy::live {

struct CoroutineLookup {
  std::vector<StateReport> states;
  bool complete = false;
  int tries = 0;
  std::size_t bytes = 0;                                                  // copied during the stop
  std::chrono::nanoseconds learning{}, stopped{}, copying{}, settling{};  // of the last try
};

class CoroutineWatcher {
 public:
  explicit CoroutineWatcher(pid_t pid, CoroutineLimits limits = {});
  // Looks up to `tries` times, until nothing is missing.
  CoroutineLookup look(int tries = 4);

 private:
  void locate(const Registers& registers, std::vector<ActiveState>& active);

  Target target_;
  StackTable stacks_;
  StackReader reader_;
  Locator locator_{own_machine()};
  Coroutines coroutines_;
  Names names_;
};

}  // namespace luaspy::live
