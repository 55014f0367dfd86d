#pragma once
// What is asked for of a recording, and what its reader passes on.

#include <cstdint>
#include <optional>
#include <string>

#include "events/event_tables.h"
#include "events/mark.h"
#include "events/suspended.h"
#include "profile/profile.h"

namespace luaspy {

// Which part of a recording is read. Times are since it began.
struct RawWindow {
  std::int64_t from_ns = 0;
  std::optional<std::int64_t> to_ns;
  std::string thread;  // its number, or a part of its name; "": all
  // Of a recording of time: the allocations that it has besides, instead of the samples of time.
  // bytes or objects.
  std::optional<Unit> allocations{};
  // Of such a recording: its suspended coroutines, instead of the samples of time (SuspendedProfile).
  bool suspended = false;
  // Of a file that has allocations and frees: what was not freed until its end.
  bool live = false;
};

// Takes the samples of a recording one by one while it is read, of the part that is asked for. Numbers and times are
// those of the part.
class RawEvents {
 public:
  virtual ~RawEvents() = default;
  // Before all others: what numbers stand for, and the unit of all weights. The tables grow until end().
  virtual void begin(const EventTables& tables, Unit unit) = 0;
  virtual void sample(ThreadId thread, const Tick& tick, const Sample& sample) = 0;
  virtual void lost(ThreadId thread, const Tick& tick, Loss loss, std::int64_t stopped_ns) = 0;
  virtual void allocation(ThreadId thread, std::int64_t at_ns, std::int64_t bytes, std::int64_t objects,
                          const Sample& sample) = 0;
  virtual void loss(Loss loss, std::int64_t count) = 0;
  virtual void idle(std::int64_t count) = 0;
  virtual void waiting(std::int64_t count) = 0;
  virtual void state(const HeapChanges::State& state) = 0;
  virtual void heap(const Tick& tick, const HeapChange& change) = 0;
  virtual void mark(const Mark& mark) = 0;
  virtual void suspended(const SuspendedLook& look) = 0;
  virtual void end(const Profile& profile) = 0;
};

}  // namespace luaspy
