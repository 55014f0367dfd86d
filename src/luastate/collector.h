#pragma once
// What a collector knows: its own state, and every object, in one list per global_State.
//
//   global_State ──allgc──▶ object ──next──▶ object ──next──▶ … ──▶ 0
//
// New objects are added at the front; only a sweep removes dead ones.
//
// 5.1: rootgc. Strings are not in it; userdata follow the main thread. 5.2 and later: allgc. Short
// strings are in it from 5.3 on. Objects with finalizers are in other lists, but threads have none
// (lgc.c, luaC_checkfinalizer: tables and userdata). LuaJIT: gc.root, as in 5.1. In 5.2 and 5.3 the
// main thread is in no list; in the others it is the last object that is not a userdata.

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/heap_reading.h"
#include "base/memory.h"

namespace luaspy {

class Lua;

struct CollectorState {
  bool known = false;      // all that follows could be read
  std::string_view phase;  // as in lgc.h and lj_gc.h: "GCSpropagate"
  std::string_view mode;   // "incremental", "generational", "emergency", "generational, major"
  std::int64_t bytes = 0;  // in use: the value of collectgarbage("count"), times 1024
  // An object with this bit in `marked` is dead: the current sweep will free it.
  std::uint8_t dead_white = 0;
  std::uint8_t new_white = 0;  // what new objects have instead
  // What it estimates to be in use, bytes: set in the atomic step and lessened by the sweep that follows;
  // nullopt: this Lua has no such field, or changes it at other times, too.
  std::optional<std::int64_t> estimate;

  bool is_dead(std::uint8_t marked) const { return (marked & dead_white) != 0; }
  // `is_new`: an object that the collector has not come to yet.
  bool may_be_alive(std::uint8_t marked, bool is_new) const {
    return known && !is_dead(marked) && (!is_new || (marked & new_white) != 0);
  }
  // From the fields of a global_State. `whites`: the bits of `marked` that are colours (WHITEBITS).
  void set(std::span<const std::string_view> phases, std::uint8_t gcstate, std::uint8_t currentwhite,
           std::uint8_t whites) {
    known = gcstate < phases.size();
    if (known) phase = phases[gcstate];
    dead_white = static_cast<std::uint8_t>(~currentwhite & whites);  // lgc.h, otherwhite
    new_white = currentwhite & whites;
  }
};

// Whether the collector shows that it has come to an atomic step between two readings (lgc.c, lj_gc.c: atomic).
// That exchanges the whites. After two such steps they are the same again: then it is behind where it was in its
// cycle, or estimates what it would not have by sweeping. False: not seen.
bool shows_atomic_step(const CollectorState& before, const CollectorState& now);

// The size of the heap of `G` and what its collector is doing; nullopt if `memory` does not have all
// of it, or it makes no sense. While PUC moves bytes between totalbytes and GCdebt (lgc.c,
// luaE_setdebt), two instructions long, the size may be wrong.
std::optional<HeapReading> read_heap(const Memory& memory, const Lua& lua, Address G);

// The header of every object.
struct ObjectHead {
  Address next = 0;
  std::uint8_t type = 0, marked = 0;
  bool is_thread = false;
};

struct ThreadList {
  std::vector<Address> threads;  // of this global_State, without dead ones
  std::int64_t dead_threads = 0;
  std::int64_t objects = 0;  // seen in the list
  bool complete = false;     // the end was reached
};

// Follows the list from `object` on, for at most `most` objects. `refresh`, if set: the list may be
// changing; called for a place whose next object cannot be trusted, to read its current memory.
// `visit`, if set, is called with each object and the next one; if it returns false, the walk ends
// and counts as complete.
struct ListWalk {
  std::int64_t most = 200'000'000;
  std::function<void(Address)> refresh;
  const Memory* live = nullptr;  // with `refresh`: the list's current beginning is read here
  std::function<bool(Address object, Address next)> visit;
};
void list_threads(const Memory& memory, const Lua& lua, Address G, Address object, const ListWalk& how,
                  ThreadList& list);

}  // namespace luaspy
