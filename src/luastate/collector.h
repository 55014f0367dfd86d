#pragma once
// What a collector knows: its own state, and every object, in one list per global_State.
//
//   global_State ──allgc──▶ object ──next──▶ object ──next──▶ … ──▶ 0        new objects come first; only a sweep takes
//   dead ones out
//
// 5.1: rootgc, in which strings are not, and in which userdata follow the main thread. 5.2 and
// later: allgc; short strings are in it from 5.3 on; objects with finalizers are in other lists,
// but threads have none (lgc.c, luaC_checkfinalizer: tables and userdata). LuaJIT: gc.root, as 5.1.
// The main thread is part of no list in 5.2 and 5.3, and the last object (of those that are no
// userdata) in the others.

#include <functional>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "luastate/dialect.h"

namespace luaspy {

struct CollectorState {
  bool known = false;
  std::string_view phase;       // as lgc.h and lj_gc.h call it: "GCSpropagate"
  std::string_view mode;        // "incremental", "generational", "emergency", "generational, major"
  std::int64_t bytes = 0;       // in use: what collectgarbage("count") says, times 1024
  std::uint8_t dead_white = 0;  // an object with this bit in `marked` is dead: to be freed by the sweep that is under
                                // way

  bool is_dead(std::uint8_t marked) const { return (marked & dead_white) != 0; }
};

CollectorState read_collector(const Memory& memory, const Dialect& lua, Address G);

// 0 if it cannot be read.
Address main_thread_of(const Memory& memory, const Dialect& lua, Address G);
// The coroutine that LuaJIT runs finalizers in (global_State.vmthref, from 2025-11 on: 5c647754);
// 0: there is none.
Address finalizer_thread_of(const Memory& memory, const Dialect& lua, Address G);

// How every object begins.
struct ObjectHead {
  Address next = 0;
  std::uint8_t type = 0, marked = 0;
  bool is_thread = false;
};
// False if there is no object that could be in a collector's list.
bool read_head(const Memory& memory, const Dialect& lua, Address object, ObjectHead& head);
Address first_object(const Memory& memory, const Dialect& lua, Address G);  // 0: none, or not to be had

struct ThreadList {
  std::vector<Address> threads;  // of this global_State, those that are dead left out
  std::int64_t dead_threads = 0;
  std::int64_t objects = 0;  // seen in the list
  bool complete = false;     // to its end
};

// Follows the list from `object` on, for `most` objects at the longest. `refresh`, if any: the list
// may be changing; asks for the memory as it is now of a place whose next object cannot be
// believed. `visit`, if any, is told each object and the next one; false ends the walk, as
// complete.
struct ListWalk {
  std::int64_t most = 200'000'000;
  std::function<void(Address)> refresh;
  const Memory* live = nullptr;  // with `refresh`: where the list begins now
  std::function<bool(Address object, Address next)> visit;
};
void list_threads(const Memory& memory, const Dialect& lua, Address G, Address object, const ListWalk& how,
                  ThreadList& list);

}  // namespace luaspy
