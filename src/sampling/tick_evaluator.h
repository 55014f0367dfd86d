#pragma once
// The main thread's part of a tick: what CPU samplers have found becomes samples, each is completed, and handed to the
// sink; what they have only counted is handed on as counts.

#include <map>
#include <memory>
#include <vector>

#include "events/event_tables.h"
#include "sampling/last_samples.h"
#include "sampling/result_ring.h"
#include "sampling/sample_sink.h"

namespace luaspy {

class TickEvaluator {
 public:
  // All arguments must outlive it. `start`: from when the times of samples are counted. `interval`: of ticks.
  TickEvaluator(EventTables& tables, SampleSink& sink, LoopCounts& counts, system::Clock::time_point start,
                std::chrono::nanoseconds interval)
      : tables_(tables), sink_(sink), counts_(counts), start_(start), interval_(interval), last_(tables) {}

  void evaluate(TickResult& found);
  // Hands on the ticks of a thread that are no results.
  void count(TrackedThread& thread);
  // For a recording without end: if the tables are full, they are renewed, and the sink is told.
  void renew_full_tables(std::int64_t now_ns);
  // Whether a thread was found to have ended, since this was asked last.
  bool thread_ended() { return std::exchange(thread_ended_, false); }

  // ---- Around a pause, in which no thread is tracked: what looks have shown of each thread is kept.
  void keep_predictions(const std::vector<std::shared_ptr<TrackedThread>>& threads);
  void give_predictions(const std::vector<std::shared_ptr<TrackedThread>>& threads);

 private:
  Sample sample_of(TickResult& found);
  StackId waiting_stack();

  EventTables& tables_;
  SampleSink& sink_;
  LoopCounts& counts_;
  const system::Clock::time_point start_;
  const std::chrono::nanoseconds interval_;
  LastSamples last_;
  bool thread_ended_ = false;
  std::map<ThreadKey, LastPrediction::Prediction> predictions_;
};

}  // namespace luaspy
