#pragma once
// record --slower: of the samples, only those of requests that took long. Whether one did is known when it is seen
// late enough, so samples wait for it, all of them in their order, and the sink gets them then. slow_label says which
// request it was.

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "events/event_tables.h"
#include "sampling/sample_sink.h"

namespace luaspy {

class SlowRequests : public SampleSink {
 public:
  static constexpr std::size_t most_held = 1 << 16;  // samples that wait, some 20 MB: then the first ones no longer can

  // `tables`: what the numbers of samples stand for. Both must outlive it.
  SlowRequests(SampleSink& sink, EventTables& tables, std::int64_t slower_ms)
      : sink_(sink), tables_(tables), slower_ms_(slower_ms) {}

  // When nothing more comes: hands over what waits.
  void finish();
  // "2 of 130 requests that were seen took 200 ms or longer".
  std::string text() const;

  // The time of the recording begins, so many milliseconds after 1970.
  void begin_at(std::int64_t wall_ms) { begin_ms_ = wall_ms; }
  void begin(system::Clock::time_point start) override;
  void add(ThreadId thread, const Tick& tick, const Sample& sample) override;
  void end(int pid, const Tick& tick) override;
  void add_idle(ThreadId thread, std::int64_t count) override { sink_.add_idle(thread, count); }
  void add_waiting(ThreadId thread, std::int64_t count) override { sink_.add_waiting(thread, count); }
  void add_loss(Loss loss, std::int64_t count) override { sink_.add_loss(loss, count); }
  void tables_renewed() override { sink_.tables_renewed(); }
  void look(const LoopCounts& counts) override { sink_.look(counts); }
  bool has_enough() override { return sink_.has_enough(); }
  void before_suspend() override { sink_.before_suspend(); }
  void after_suspend() override { sink_.after_suspend(); }

 private:
  struct Held {
    Tick tick;
    ThreadId thread{};
    Sample sample;
    int ended = 0;  // 0: it is a sample. Else: this process has ended.
  };
  struct Request {
    std::string name{};         // what its label says
    bool has_name = false;      // it is not that of a part of it
    std::string value{};        // of slow_label: made once
    std::int64_t begun_ms = 0;  // since 1970
    std::int64_t age_ms = 0;    // when it was seen last
    std::size_t held = 0;       // samples of it that wait
  };
  // The same address may be in several processes. 0: it was for none.
  std::uint64_t key_of(ThreadId thread, const Sample& sample) const;
  void hold(Held held);
  void release();
  LabelsId with_slow_label(LabelsId labels, Request& request);

  SampleSink& sink_;
  EventTables& tables_;
  const std::int64_t slower_ms_;
  std::int64_t begin_ms_ = 0;
  std::deque<Held> held_;
  bool has_ended_ = false;                               // nothing more comes
  std::unordered_map<std::uint64_t, Request> requests_;  // by key_of(): those with samples that wait, and slow ones
  std::int64_t seen_ = 0, slow_ = 0;
};

}  // namespace luaspy
