#pragma once
// Reads raw recordings; docs/raw-format.md describes them byte by byte.

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>

#include "base/result.h"
#include "events/event_tables.h"
#include "profile/profile.h"
#include "profile/stack_view.h"

namespace luaspy {

// Which part of a recording is read. Times are since it began.
struct RawWindow {
  std::int64_t from_ns = 0;
  std::optional<std::int64_t> to_ns;
  std::string thread;  // its number, or a part of its name; "": all
  // Of a recording of time: the allocations that it has besides, instead of the samples of time.
  // bytes or objects.
  std::optional<Unit> allocations{};
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
  virtual void end(const Profile& profile) = 0;
};

// Reads a raw recording, or the one that a flame graph page carries, as a profile; its bytes are not
// trusted. Everything after a damaged or unfinished block is left out, and `about.complete` is false
// then. Returns an error if it is not a raw recording, or its version or unit is unknown. `seen`, if
// set, is called now and then with how many bytes of the file have been read; `events`, with what was read.
Result<Profile> read_raw(std::istream& in, const ViewOptions& shape, const RawWindow& window = {},
                         bool keeps_order = true, const std::function<void(std::int64_t)>& seen = {},
                         RawEvents* events = nullptr);

// The bytes of a raw recording, or of the one that a page carries; empty if there are more than
// `most`. They are not checked.
std::string raw_bytes(std::istream& in, std::size_t most);

}  // namespace luaspy
