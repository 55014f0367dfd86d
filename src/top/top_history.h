#pragma once
// What the key `o` writes: all samples since the start, or since the key `r`, as a raw recording in
// memory. Its size is bounded, however long top runs.

#include <memory>
#include <ostream>
#include <string>

#include "base/mode.h"
#include "base/result.h"
#include "output/raw.h"
#include "recording/carried_recording.h"

namespace luaspy {

class TopHistory {
 public:
  // About 15 hours of a thread at 100 Hz, 7 if its heap changes all the time.
  static constexpr std::size_t usual_bytes = std::size_t{32} << 20;
  // `tables`: what the numbers of samples stand for; they must outlive it. `about`: what is known of the
  // recording before it begins. With more than `most_bytes`, all that was seen until then is forgotten.
  TopHistory(const EventTables& tables, Metadata about, std::size_t most_bytes = usual_bytes);

  // One tick of one thread.
  void add(ThreadId thread, const Tick& tick, const Sample& sample);
  void end(int pid, const Tick& tick);
  void add_idle(std::int64_t count) { raw_->idle(count); }
  void add_waiting(std::int64_t count) { raw_->waiting(count); }
  void add_loss(Loss loss, std::int64_t count) { raw_->loss(loss, count); }

  // Sampling has come so far, counted since its start. `cpu`: see LoopCounts.
  void advance(std::int64_t ticks, std::int64_t duration_ns, const CpuUse& cpu);
  // What may change of the target.
  void set_metadata(const Metadata& target);

  // Forgets everything. Call it when the tables have got other numbers, too.
  void begin_anew();
  // All of it, up to now.
  std::string recording();

 private:
  void open();
  void add_heap(const Tick& since_begun, const HeapChange& change);

  const EventTables& tables_;
  Metadata about_;  // of this part of the time
  std::size_t most_bytes_;
  std::int64_t ticks_ = 0, duration_ns_ = 0;             // of sampling, by now
  std::int64_t ticks_before_ = 0, duration_before_ = 0;  // when this history began
  HeapChanges heaps_;
  std::size_t states_ = 0;  // written
  std::unique_ptr<CarriedRecording> bytes_;
  std::unique_ptr<std::ostream> stream_;
  std::unique_ptr<RawWriter> raw_;
};

// Writes a raw recording as `mode` shows it, in the format that the path's ending chooses. Returns
// what to do with the file.
Result<std::string> write_recording(const std::string& recording, Mode mode, const std::string& path);

}  // namespace luaspy
