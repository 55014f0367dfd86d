#include "jitwatch/watch_thread.h"

#include <algorithm>

#include "system/signals.h"

namespace luaspy {
namespace {

using Clock = system::Clock;

constexpr std::chrono::milliseconds pause(1), first_survey(200), between_surveys(2000);
constexpr int survey_cost = 20;  // at least so many times as long as one takes

}  // namespace

void WatchThread::begin() {
  for (const auto& watcher : watchers_) watcher->look();
  thread_ = system::thread_without_signals([this] { run(); });
}

void WatchThread::add(pid_t pid, const Lua& lua, Address G) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  const auto is_same = [&](const std::unique_ptr<JitWatcher>& watcher) {
    return watcher->knowledge().pid == pid && watcher->knowledge().G == G && watcher->knowledge().lua == &lua;
  };
  if (std::ranges::any_of(watchers_, is_same)) return;
  if (watchers_.size() >= most_watched) {
    left_out_ = true;
    return;
  }
  watchers_.push_back(std::make_unique<JitWatcher>(pid, lua, G, start_));
  survey_at_ = Clock::now() + first_survey;
}

bool WatchThread::try_visit(const std::function<void(const Watchers&)>& act) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) act(watchers_);
  return lock.owns_lock();
}

void WatchThread::survey_all() {
  const Clock::time_point begin = Clock::now();
  for (const auto& watcher : watchers_) watcher->survey();
  const Clock::duration took = Clock::now() - begin;
  survey_at_ = Clock::now() + std::max<Clock::duration>(between_surveys, took * survey_cost);
}

void WatchThread::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    for (const auto& watcher : watchers_) watcher->look();
    if (surveys_ == Surveys::some && !watchers_.empty() && Clock::now() >= survey_at_) survey_all();
    wake_.wait_for(lock, pause);
  }
  for (const auto& watcher : watchers_) watcher->look();
  if (surveys_ == Surveys::some) survey_all();  // which may find that they have ended
}

void WatchThread::stop() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace luaspy
