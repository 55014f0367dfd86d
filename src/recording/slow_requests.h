#pragma once
// record --slower: of the samples, only those of requests that took long. Whether one did is known when it is seen
// late enough, so samples wait for it, all of them in their order, and the sink gets them then. slow_label says which
// request it was.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "events/event_tables.h"
#include "sampling/sample_sink.h"

namespace luaspy {

class SlowRequests : public SampleSink {
 public:
  // Samples, and groups of coroutines, that wait, some 20 MB: then the first ones no longer can.
  static constexpr std::size_t most_held = 1 << 16;

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
  // Of coroutines, too, only those of slow requests are left.
  void add_suspended(const SuspendedLook& look) override;
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
    Tick tick{};
    ThreadId thread{};
    Sample sample{};
    int ended = 0;  // 0: it is a sample. Else: this process has ended.
    std::unique_ptr<SuspendedLook> suspended{};
    std::size_t size() const { return 1 + (suspended ? suspended->groups.size() : 0); }
  };
  struct Request {
    std::string name{};         // what its label says
    bool has_name = false;      // it is not that of a part of it
    std::string value{};        // of slow_label: made once
    std::int64_t begun_ms = 0;  // since 1970
    std::int64_t age_ms = 0;    // when it was seen last
    std::size_t held = 0;       // what waits of it
  };
  // The same address may be in several processes. 0: it was for none.
  static std::uint64_t key_of(int pid, const RequestIdentity& request);
  std::uint64_t key_of(ThreadId thread, const Sample& sample) const;
  void meet(std::uint64_t key, const RequestIdentity& identity, LabelsId labels, std::int64_t at_ns);
  // The labels of what was held, with slow_label; nullopt: it is of no slow request.
  std::optional<LabelsId> decide(std::uint64_t key, LabelsId labels);
  void hold(Held held);
  void release();
  void release(SuspendedLook& look);
  LabelsId with_slow_label(LabelsId labels, Request& request);

  SampleSink& sink_;
  EventTables& tables_;
  const std::int64_t slower_ms_;
  std::int64_t begin_ms_ = 0;
  std::deque<Held> held_;
  std::size_t held_size_ = 0;
  bool has_ended_ = false;                               // nothing more comes
  std::unordered_map<std::uint64_t, Request> requests_;  // by key_of(): those of which something waits, and slow ones
  std::int64_t seen_ = 0, slow_ = 0;
};

}  // namespace luaspy
