#pragma once
// Collects what top shows. It uses no clock: ticks advance its time. Its memory is bounded, however
// long it runs and however many functions and threads come and go.

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/mode.h"
#include "events/event_tables.h"
#include "top/top_counts.h"
#include "top/top_pane.h"

namespace luaspy {

class TopTable {
 public:
  // `window_ns`: what counts as recent. Without it, that is everything since the last begin_window(),
  // and latest() knows nothing.
  // `tables`: what the numbers of samples stand for; they must outlive it. `mode`: which frames it counts.
  TopTable(const EventTables& tables, Mode mode, std::optional<std::int64_t> window_ns);

  // One tick of one thread. `passed_ns`: since the tick before.
  void add(ThreadId thread, std::int64_t passed_ns, const Sample& sample);
  void add_idle(ThreadId thread, std::int64_t count = 1);
  // At `count` ticks, the thread could have run but had no CPU.
  void add_waiting(ThreadId thread, std::int64_t count);
  // From now on the tables have other numbers.
  void forget_stacks();
  void add_loss(Loss loss, std::int64_t count = 1);
  // All threads have been looked at, `ticks` times since the last call. Removes what is older than
  // the window from the recent times.
  void end_tick(std::int64_t passed_ns, std::int64_t ticks = 1);
  // The target's VM is LuaJIT, which reports its state.
  void set_luajit() { counts_.luajit = counts_.sees_collector = true; }
  // Nothing is recent now.
  void begin_window();
  // Starts again, as if nothing had been sampled.
  void reset();

  const TopCounts& counts() const { return counts_; }
  // The latest stack of the window in which the row's function, or line, was innermost; if there is
  // none, the latest with it at all.
  std::optional<TopSeen> latest(const TopRow& row) const;

 private:
  using Index = std::uint32_t;
  // A stack and the entries that it counts for. Successive looks at a thread that has not moved
  // share it.
  struct Path {
    struct Call {
      Index function = 0;
      int line = 0;
      bool is_near = false;
    };
    std::vector<Call> calls;    // outermost first
    std::vector<Index> totals;  // each once
    Index own_function = 0, own_line = 0;
    std::size_t own_names = 0;  // own_names_ when it was made
  };
  struct PerThread {
    StackId stack = empty_stack;
    std::shared_ptr<const Path> path;  // of that stack
    std::uint64_t seen = 0;            // the number of the tick
    int pid = 0;
    std::optional<Index> row;  // into counts_.threads, of one that was sampled
    TopCounts::Span ran;
    bool ended = false;
  };
  struct Look {
    std::int64_t end = 0, weight = 0;  // ns; end: on the clock of all ticks
    std::shared_ptr<const Path> path;
    PerThread* thread = nullptr;  // kept as long as the look counts as recent
    Activity activity = Activity::lua;
    bool ran = false;
    std::int64_t stopped = 0;
  };
  struct Tick {
    std::int64_t end = 0, weight = 0;
    bool idle = false;
    std::int64_t count = 1, waiting = 0;  // number of ticks; number of ticks, over all threads, without a CPU
  };
  using Member = std::int64_t TopCounts::Span::*;

  PerThread& known(ThreadId thread);
  Index row_of(PerThread& known, ThreadId thread);
  void count_run(PerThread& thread, Member span, std::int64_t weight);
  void forget_ended();
  Index function_of(const Frame& frame);
  std::optional<Index> find_function(std::size_t hash, const Frame& frame) const;
  Index line_of(Index function, const Frame& frame);
  Index entry_of(TopCounts::Entry::Kind kind, Index a, Index b);
  std::shared_ptr<const Path> path_of(Index thread, StackId stack);
  void observe(Activity activity);
  void record_name(Index function, const Frame& frame);
  void distinguish(Index function);
  void count(const Look& look, Member span, std::int64_t sign);
  void keep(Look look);
  void see(PerThread& thread);
  bool is_of(Index entry, const TopRow& row) const;

  const EventTables& tables_;
  Mode mode_;
  std::optional<std::int64_t> window_;
  TopCounts counts_;
  std::deque<Look> looks_;  // of the window
  std::uint64_t look_ = 1;  // the number of the next look
  struct Latest {
    std::uint64_t own = 0, total = 0;  // the numbers of looks; 0: none
  };
  std::vector<Latest> latest_;  // by entry
  std::deque<Tick> ticks_;
  std::unordered_map<ThreadKey, PerThread, ThreadKey::Hash> threads_;  // all that live, whatever has a row
  std::size_t own_rows_ = 0;                                           // of counts_.threads
  std::unordered_map<int, Index> further_;  // by pid: the row of the threads without one of their own
  std::size_t room_ = 1 << 12;  // for threads, before those that have ended are forgotten: there may be no end of them
  std::int64_t clock_ = 0;
  std::uint64_t tick_ = 1;
  std::size_t seen_ = 0;
  bool ran_ = false;                                            // some thread ran in the current tick
  std::int64_t waiting_ = 0;                                    // Tick::waiting of the current tick
  std::unordered_multimap<std::size_t, Index> function_index_;  // by hash
  std::size_t own_names_ = 0;  // functions with an own name: a new one may change what another path counts for
  std::unordered_map<std::uint64_t, Index> line_index_;                  // by function and line
  std::array<std::unordered_map<std::uint64_t, Index>, 4> entry_index_;  // by kind, then by both numbers
  struct Names {
    std::vector<std::pair<std::string, std::int64_t>> seen;  // and how often
  };
  std::deque<Names> names_;                          // parallel to counts_.functions
  std::unordered_map<std::string, int> same_place_;  // by file, line and name: how many functions had it
};

}  // namespace luaspy
