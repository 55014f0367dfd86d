#pragma once
// What the key `o` writes: all samples since the start, or since the key `r`, as a raw recording in
// memory. Its size is bounded, however long top runs.

#include <memory>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mode.h"
#include "base/result.h"
#include "output/raw.h"
#include "profile/last_sample.h"
#include "record/carried_recording.h"

namespace luaspy {

class TopHistory {
 public:
  struct Limits {
    std::size_t bytes = std::size_t{32} << 20;  // about 15 hours of a thread at 100 Hz, 7 if its heap changes all the
                                                // time
    std::size_t stacks = std::size_t{1} << 20;  // different ones, and their outer parts
    std::size_t threads = std::size_t{1} << 16;
  };
  // `about`: what is known of the recording before it begins. When a limit is reached, all that was
  // seen until then is forgotten.
  explicit TopHistory(About about, Limits limits);
  explicit TopHistory(About about) : TopHistory(std::move(about), Limits()) {}

  bool knows(const ThreadKey& thread) const { return thread_index_.contains(thread); }
  void know(const Profile::Thread& thread);
  // One tick of a thread that is known.
  void add(const ThreadKey& of, const Tick& tick, const Sample& sample);
  void end(int pid, const Tick& tick);
  void add_idle(std::int64_t count) { raw_->idle(count); }
  void add_waiting(std::int64_t count) { raw_->waiting(count); }
  void add_loss(Loss loss, std::int64_t count) { raw_->loss(loss, count); }

  // Sampling has come so far, counted since its start. `cpu`: see LoopCounts.
  void advance(std::int64_t ticks, std::int64_t duration_ns, const CpuUse& cpu);
  // What may change of the target.
  void tell_target(const About& target);

  // Forgets everything but what sleeping threads wait in.
  void begin_anew();
  // All of it, up to now.
  std::string recording();

 private:
  struct Known {
    std::uint32_t index = 0;  // in threads_
    LastSample last;
    bool has_last = false;
    std::int64_t seen_ns = 0;  // Tick::at_ns
  };
  void open();
  void add(const Tick& since_begun, Known& known, const Sample& sample);
  void add_heap(const Tick& since_begun, const HeapChange& change);

  About about_;  // of this part of the time
  Limits limits_;
  std::int64_t ticks_ = 0, duration_ns_ = 0;             // of sampling, by now
  std::int64_t ticks_before_ = 0, duration_before_ = 0;  // when this history began
  std::unique_ptr<StackTable> stacks_;
  std::vector<Profile::Thread> threads_;
  std::unordered_map<ThreadKey, Known, ThreadKey::Hash> thread_index_;
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
