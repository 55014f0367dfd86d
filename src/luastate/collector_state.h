#pragma once
// What a collector's own fields and the header of an object say.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/memory.h"

namespace luaspy {

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

// The header of every object.
struct ObjectHead {
  Address next = 0;
  std::uint8_t type = 0, marked = 0;
  bool is_thread = false;
};

}  // namespace luaspy
