#pragma once
// Connects the thread that samples and the one that draws: neither waits for the other longer than
// it takes to copy the counts, or the recording.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "sampling/sampling_loop.h"
#include "system/calls.h"
#include "top/top_heaps.h"
#include "top/top_history.h"
#include "top/top_table.h"

namespace luaspy {

class TopFeed : public SampleSink {
 public:
  // plain: one table after another, and nothing else: there are no other modes, no stacks and no
  // recording.
  enum class Output { screen, plain };
  // `tree` has to outlive it. `about`: what is known of the recording before it begins. `mode`:
  // which frames are shown.
  TopFeed(ProcessTree& tree, TopTarget target, Metadata about, Mode mode, Output output);

  // The sampling side.
  void add(ThreadId thread, const Tick& tick, const Sample& sample) override;
  void add_idle(ThreadId thread, std::int64_t count) override;
  void add_waiting(ThreadId thread, std::int64_t count) override;
  void add_loss(Loss loss, std::int64_t count) override;
  void end(int pid, const Tick& tick) override;
  void tables_renewed() override;
  void look(const LoopCounts& counts) override;
  bool has_enough() override { return enough_; }
  void before_suspend() override;
  void after_suspend() override;
  // Sampling has ended.
  void end(const LoopCounts& counts);

  // The drawing side.
  void copy(TopCounts& counts, TopTarget& target);
  // The same, and nothing of it is recent any more.
  void drain(TopCounts& counts, TopTarget& target);
  // The path of the program, which may have executed another one.
  std::string executable();
  // From now on copy() gives what this mode shows, of all samples.
  void show(Mode mode);
  void reset();
  std::optional<TopSeen> latest(const TopRow& row);
  // Everything since the start or reset(), as a raw recording.
  std::string recording();
  Mode shown() const { return shown_; }
  void want_no_more() { enough_ = true; }
  bool is_over() const { return over_; }
  // Waits until sampling is over, or for `patience`.
  void wait_for_end(std::chrono::nanoseconds patience);
  bool wants_suspend() const { return suspension_ == Suspension::wanted; }
  // Says that luaspy may be stopped now, and returns when it runs again.
  void stand_by();
  // Drawing has ended: luaspy may be stopped at any time.
  void release();

 private:
  enum class Suspension { none, wanted, possible };
  void add_table(Mode mode, std::optional<std::int64_t> window);
  void ask_luas();

  ProcessTree& tree_;
  std::mutex mutex_;  // protects tables_, heaps_, sampled_ns_, cpu_, about_, history_ and target_
  std::map<Mode, TopTable> tables_;
  TopHeaps heaps_;
  std::int64_t sampled_ns_ = 0;  // how far sampling has come
  Metadata about_;
  std::optional<TopHistory> history_;
  TopTarget target_;
  CpuUse cpu_, cpu_before_;  // as LoopCounts: by now, and at the reset
  std::int64_t sampled_cpu_ns_ = 0, sampled_cpu_before_ = 0;
  Mode shown_;  // used by the drawing side only
  // Used by the sampling side only.
  std::int64_t ticks_ = 0, duration_ns_ = 0;
  system::Clock::time_point luas_asked_{};

  std::atomic<bool> enough_ = false, over_ = false;
  std::atomic<Suspension> suspension_ = Suspension::none;
  std::mutex change_mutex_;
  bool released_ = false;
  std::condition_variable change_;  // of over_, suspension_, released_
};

}  // namespace luaspy
