#include "coroutine_look.h"

#include <catch2/catch.hpp>

namespace luaspy::live {
namespace {

Process opened(pid_t pid) {
  Result<Process> process = Process::open(pid);
  REQUIRE(process);
  return std::move(*process);
}

constexpr WalkLimits walk_limits{400, 100, true};

}  // namespace

CoroutineWatcher::CoroutineWatcher(pid_t pid, CoroutineLimits limits)
    : target_(opened(pid), std::chrono::milliseconds(2000)),
      reader_(target_.process(), target_.memory(), stacks_, {}, walk_limits),
      coroutines_(target_.memory(), limits),
      names_(target_.memory()) {
  locator_.try_layouts(reader_.layouts_to_try());
}

void CoroutineWatcher::locate(const Registers& registers, std::vector<ActiveState>& active) {
  const AddressSpace space = target_.process().address_space();
  const Mapping* const stack = space.find(registers.sp());
  REQUIRE(stack != nullptr);
  std::vector<std::byte> bytes(stack->end - registers.sp());
  std::vector<Address> deferred;
  REQUIRE(target_.memory().read(registers.sp(), bytes));
  locator_.locate({target_.memory(), registers, {registers.sp(), bytes}}, {}, Locator::Unknown::read, active, deferred);
}

CoroutineLookup CoroutineWatcher::look(int tries) {
  using system::Clock;
  CoroutineLookup result;
  const std::shared_ptr<Thread> thread = target_.process().threads().front();
  while (!result.complete && result.tries < tries) {
    ++result.tries;
    const AddressSpace space = target_.process().address_space();
    locator_.set_space(space);
    locator_.find_states(target_.memory(), space, Locator::most_searched);
    const auto found = Clock::now();
    coroutines_.find(space, locator_.global_states());
    result.learning = Clock::now() - found;
    std::vector<std::vector<ActiveState>> active(1);
    HeldThread held(target_, thread);
    REQUIRE(held.stands_still());
    const auto before = Clock::now();
    coroutines_.copy();
    result.copying = Clock::now() - before;
    locate(held.registers(), active[0]);
    const bool waits_for_page = held.sleeps() && held.state().system_call < 0;
    if (waits_for_page || !held.has_not_run()) {
      --result.tries;
      continue;
    }
    result.stopped = held.resume();
    const auto copied = Clock::now();
    result.complete = coroutines_.confirm(active);
    result.states = coroutines_.report(names_, reader_.native_code());
    result.settling = Clock::now() - copied;
    result.bytes = coroutines_.copied_bytes();
  }
  return result;
}

}  // namespace luaspy::live
