#include "allocations/growth_probe.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "allocations/heap_now.h"
#include "luastate/lua.h"
#include "system/calls.h"

namespace luaspy {
namespace {

using Clock = system::Clock;
using namespace std::chrono_literals;

constexpr Clock::duration apart = 2us;

struct Counted {
  std::int64_t heap = 0;
  Clock::time_point at{};  // in the middle of the read
};

std::optional<Counted> count(const Memory& memory, const Lua& lua, Address G) {
  const Clock::time_point before = Clock::now();
  const std::optional<std::int64_t> heap = heap_now(memory, lua, G);
  if (!heap) return std::nullopt;
  return Counted{*heap, before + (Clock::now() - before) / 2};
}

// A thread that sleeps for so short a time sleeps for some 50 µs.
void spin_until(Clock::time_point end) {
  while (Clock::now() < end) {
  }
}

Growth::Seen between(const Counted& one, const Counted& other) {
  return {static_cast<double>(std::max<std::int64_t>(other.heap - one.heap, 0)),
          static_cast<double>(std::max<std::int64_t>(system::to_ns(other.at - one.at), 1))};
}

}  // namespace

std::optional<Growth> look_at_growth(const Memory& memory, const Lua& lua, Address G) {
  if (!count(memory, lua, G)) return std::nullopt;  // the first read after a sleep takes longer
  spin_until(Clock::now() + apart);
  std::array<std::optional<Counted>, 3> counted;
  for (std::optional<Counted>& each : counted) {
    if (&each == &counted[1]) spin_until(counted[0]->at + apart);
    each = count(memory, lua, G);
    if (!each) return std::nullopt;
  }
  return Growth{between(*counted[1], *counted[2]), between(*counted[0], *counted[1]), counted[2]->heap};
}

}  // namespace luaspy
