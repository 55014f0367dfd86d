#pragma once
// What a collector is doing, and the list that it keeps of every object, one per global_State.
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
#include <vector>

#include "base/heap_reading.h"
#include "base/memory.h"
#include "luastate/lua.h"

namespace luaspy {

// Whether the collector shows that it has come to an atomic step between two readings (lgc.c, lj_gc.c: atomic).
// That exchanges the whites. After two such steps they are the same again: then it is behind where it was in its
// cycle, or estimates what it would not have by sweeping. False: not seen.
bool shows_atomic_step(const CollectorState& before, const CollectorState& now);

// The size of the heap of `G` and what its collector is doing; nullopt if `memory` does not have all
// of it, or it makes no sense. While PUC moves bytes between totalbytes and GCdebt (lgc.c,
// luaE_setdebt), two instructions long, the size may be wrong.
std::optional<HeapReading> read_heap(const Memory& memory, const LuaHeap& lua, Address G);

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
