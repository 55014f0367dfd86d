#pragma once
// Keeps the last minutes of all processes, each sample with its time, thread and state, in bounded memory: as raw
// recordings (output/raw.h) of a tenth of that time each. The oldest one goes first.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "output/raw.h"
#include "profile/heap_track.h"
#include "sampling/sample_sink.h"
#include "system/calls.h"

namespace luaspy {

// Some time of all processes. Immutable.
struct KeptPart {
  using Key = std::pair<int, std::uint64_t>;  // ThreadKey::pid and program
  struct Of {
    Metadata about;  // of the program; not of the time
    std::int64_t samples = 0, idle = 0, waiting = 0;
  };
  std::string raw;             // times since `began`
  std::map<Key, Of> programs;  // those that have something in it
  system::Clock::time_point began{}, ended{};
  std::int64_t started_s = 0;  // `began`, since 1970
  std::int64_t ticks = 0;      // LoopCounts::ticks
};
using KeptParts = std::vector<std::shared_ptr<const KeptPart>>;

class FlightRecorder : public SampleSink {
 public:
  struct Options {
    system::Clock::duration keeps = std::chrono::minutes(10);
    std::size_t most_bytes = std::size_t{16} << 20;
    std::function<void(const KeptPart::Key&, Metadata&)> describe;  // sets what is known of a program, if it is known
  };
  // `tables`: what the numbers of samples stand for; they must outlive it.
  FlightRecorder(const EventTables& tables, Options options);

  void begin(system::Clock::time_point start) override { start_ = start, ticks_ = 0; }
  void add(ThreadId thread, const Tick& tick, const Sample& sample) override;
  void add_idle(ThreadId thread, std::int64_t count) override;
  void add_waiting(ThreadId thread, std::int64_t count) override;
  void add_loss(Loss, std::int64_t) override {}  // of no process
  void end(int pid, const Tick& tick) override;
  void tables_renewed() override;
  // More is known of programs now.
  void describe();
  // Completes the part that is being written, if it is old enough or somebody waits for it. Call it often.
  void look(const LoopCounts& counts) override;

  // All that is kept, the oldest first, up to now: waits until the thread that samples has come to look(), a second at
  // most. May be called by any other thread.
  KeptParts parts();
  struct Size {
    std::int64_t bytes = 0;
    system::Clock::duration time{};  // how far back it goes
    bool is_full = false;            // memory, not time, bounds it
  };
  // May be called by any thread.
  Size size() const;

 private:
  // `at`: when that is which is about to be added.
  KeptPart::Of& program_of(ThreadId thread, system::Clock::time_point at);
  void open(system::Clock::time_point at);
  void cut();
  void drop_old();
  Tick in_part(const Tick& tick) const;
  void write(const Tick& tick, const HeapChange& change);

  const EventTables& tables_;
  const Options options_;
  system::Clock::time_point start_{};
  // The part that is being written; writer_ is nullptr: there is none.
  std::ostringstream raw_;
  std::unique_ptr<RawWriter> writer_;
  std::unique_ptr<KeptPart> open_;
  HeapChanges heaps_;
  std::size_t states_ = 0;  // of heaps_, written
  std::int64_t ticks_ = 0;  // LoopCounts::ticks, at the last look

  mutable std::mutex lock_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const KeptPart>> kept_;
  std::size_t bytes_ = 0;               // of these
  std::int64_t wanted_ = 0, made_ = 0;  // how often somebody has waited for a cut; up to which one that was done
  bool is_full_ = false;
};

}  // namespace luaspy
