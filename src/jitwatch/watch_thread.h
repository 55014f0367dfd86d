#pragma once
// The thread that looks at compilers, while another one samples.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "jitwatch/jit_watcher.h"

namespace luaspy {

class WatchThread {
 public:
  // Surveys (JitWatcher::survey): some seconds apart, or never.
  enum class Surveys : std::uint8_t { some, none };
  explicit WatchThread(Surveys surveys) : surveys_(surveys) {}
  ~WatchThread() { stop(); }
  WatchThread(const WatchThread&) = delete;
  WatchThread& operator=(const WatchThread&) = delete;

  using Watchers = std::vector<std::unique_ptr<JitWatcher>>;
  // Calls `act` while no look is under way. False: one is, and nothing was done: whoever samples does not wait for it.
  bool try_visit(const std::function<void(const Watchers&)>& act);
  // The same once it has ended.
  void visit(const std::function<void(const Watchers&)>& act) { act(watchers_); }
  // From now on this Lua is looked at; once. At most most_watched. Nothing is done if a look is under way: ask again.
  void add(pid_t pid, const Lua& lua, Address G);
  // What the Luas that are there have decided is known when this returns, and what changes is seen from now on. Once.
  void begin();
  // Ends, after one more look at everything if the targets live.
  void stop();
  system::Clock::time_point start() const { return start_; }
  bool left_some_out() const { return left_out_; }

 private:
  void run();
  void survey_all();

  static constexpr std::size_t most_watched = 16;
  const Surveys surveys_;
  const system::Clock::time_point start_ = system::Clock::now();
  std::mutex mutex_;
  std::condition_variable wake_;
  Watchers watchers_;
  system::Clock::time_point survey_at_ = start_;
  bool ends_ = false, left_out_ = false;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace luaspy
