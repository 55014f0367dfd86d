#include "allocations/allocator.h"

#include <utility>

namespace luaspy {

bool Allocator::is_another() {
  const std::uint64_t now = lua.identity(memory, G), before = std::exchange(identity, now);
  return before != 0 && now != before;
}

bool Allocator::renew() {
  function = 0;
  predicted = {};
  objects = nullptr;
  probed = {};
  runs = {};
  usual = {};
  seen_by_growth = false;
  chosen = 0;
  kept_bytes = 0;
  return lua.recognise_main(memory, lua.main_thread(memory, G), G) == &lua;
}

}  // namespace luaspy
