#pragma once
// Looks at the suspended coroutines of all sampled processes, while these are sampled: by a thread of its own, at a
// pace of its own, and without a stop. All functions are called by the thread that runs the sampling loop.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "attach/live_memory.h"
#include "heap/coroutine_watch.h"
#include "sampling/process_tree.h"
#include "sampling/sample_sink.h"
#include "stack/host_requests.h"

namespace luaspy {

class CoroutineLooks {
 public:
  // `tree` must outlive it. `rate`: of looks, Hz; fewer if each takes long. `by_request`: those that wait for different
  // requests are apart, not only for requests of another name.
  CoroutineLooks(ProcessTree& tree, double rate, bool by_request)
      : tree_(tree), pace_(static_cast<std::int64_t>(1e9 / rate)), by_request_(by_request) {}
  ~CoroutineLooks() { stop(); }
  CoroutineLooks(const CoroutineLooks&) = delete;
  CoroutineLooks& operator=(const CoroutineLooks&) = delete;

  // The time of the recording begins.
  void start(system::Clock::time_point start);
  // Gives what was found since the last call to the sink. Often: it costs little if there is nothing.
  void look(SampleSink& sink);
  // At the end.
  void finish(SampleSink& sink);

  // What to say of it at the end; "": nothing.
  std::string text() const;

  // Of luaspy's own time that looks take; with more to read they are rarer.
  static constexpr double most_cpu = 0.05;  // of one CPU

 private:
  struct Watched {
    Watched(Session& session, Address its_G, const Lua& its_lua, bool by_request);
    pid_t pid;
    std::uint64_t program;
    std::string process;
    Address G;
    const Lua& lua;
    LiveMemory memory;
    std::optional<HostRequests> requests;  // as the session's samples knew them when it was looked at last
    std::vector<std::pair<pid_t, Sampler::LastStop>> stops;  // of its threads, as the sampler knew them last
    CoroutineWatch watch;
    std::int64_t looked_ns = 0;  // when it was looked at last; before that: found
    bool was_found = false;      // in the last round
    bool has_fibers = false;     // coroutines on C stacks of their own were seen
    bool left_out = false;       // of the last round: it was not known which of these wait
  };

  void find();
  void run();
  // Where the threads are of each process. False: it is not known of one in which that matters.
  bool find_stacks();
  void look_at_all();
  void add_round(SampleSink& sink);
  void add(SampleSink& sink, Watched& watched, Session& session);
  Session* session_of(const Watched& watched) const;  // nullptr: it has ended
  void stop();

  static constexpr std::size_t most_watched = 256;
  ProcessTree& tree_;
  const std::chrono::nanoseconds pace_;
  const bool by_request_;
  system::Clock::time_point start_{}, find_at_{};
  std::set<std::uint64_t> searched_;  // programs
  std::mutex mutex_;                  // held while there is a look
  std::condition_variable wake_;
  std::vector<std::unique_ptr<Watched>> watched_;
  CoroutineWatch::Numbers numbers_;
  system::Clock::time_point next_{};
  std::int64_t round_at_ns_ = 0, spent_ns_ = 0, looks_ = 0, incomplete_ = 0;
  std::map<pid_t, StacksInUse> stacks_;
  std::int64_t left_out_ = 0;  // looks at a Lua
  bool has_round_ = false, left_some_out_ = false, ends_ = false;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace luaspy
