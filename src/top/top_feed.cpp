#include "top/top_feed.h"

#include <utility>

namespace luaspy {
namespace {

TopTable::Thread name_of(Session& session, const Thread& thread) {
  return {session.target().process().pid(), thread.tid(), thread.name()};
}

}  // namespace

TopFeed::TopFeed(Family& family, TopTarget target, Mode mode)
    : family_(family),
      table_(static_cast<std::int64_t>(target.window * 1e9)),
      target_(std::move(target)),
      mode_(mode) {}

void TopFeed::add(Session& of, const Thread& thread, const Tick& tick, Sample& sample) {
  keep_shown(mode_, sample.stack);
  const std::lock_guard lock(mutex_);
  table_.add(name_of(of, thread), tick.weight, sample);
}

void TopFeed::add_idle(Session& of, const Thread& thread, const Tick&, std::int64_t) {
  const std::lock_guard lock(mutex_);
  table_.add_idle(name_of(of, thread));
}

void TopFeed::add_waiting(Session& of, const Thread& thread, const Tick&, std::int64_t count) {
  const std::lock_guard lock(mutex_);
  table_.add_waiting(name_of(of, thread), count);
}

void TopFeed::add_loss(Loss loss, std::int64_t count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  table_.add_loss(loss, count);
}

void TopFeed::look(const LoopCounts& counts) {
  if (counts.ticks != ticks_) {
    const std::lock_guard lock(mutex_);
    table_.end_tick(counts.duration_ns - duration_ns_, counts.ticks - ticks_);
    ticks_ = counts.ticks, duration_ns_ = counts.duration_ns;
  }
  constexpr std::chrono::milliseconds ask_again(250);
  if (system::Clock::now() - luas_asked_ > ask_again) ask_luas();
}

void TopFeed::ask_luas() {
  luas_asked_ = system::Clock::now();
  std::vector<std::string> luas = family_.rows();
  std::string command = family_.target().target().process().command();  // before its exec, a launched target has
                                                                        // another command
  const bool lua_mapped = family_.has_lua();
  const std::lock_guard lock(mutex_);
  target_.lua_mapped |= lua_mapped;
  for (const std::string& lua : luas) {
    if (lua.starts_with("LuaJIT")) table_.know_luajit();
  }
  if (!luas.empty()) target_.luas = std::move(luas);
  if (!command.empty() && family_.target().target().process().alive()) target_.command = std::move(command);
  target_.processes = family_.sessions().size();
}

void TopFeed::end(const LoopCounts& counts) {
  {
    const std::lock_guard lock(mutex_);
    target_.ended = counts.target_ended;
  }
  const std::lock_guard lock(change_mutex_);
  over_ = true;
  change_.notify_all();
}

void TopFeed::copy(TopCounts& counts, TopTarget& target) {
  const std::lock_guard lock(mutex_);
  counts = table_.counts();
  target = target_;
}

void TopFeed::reset() {
  const std::lock_guard lock(mutex_);
  table_.reset();
}

void TopFeed::wait_for_end(std::chrono::nanoseconds patience) {
  std::unique_lock lock(change_mutex_);
  change_.wait_for(lock, patience, [&] { return over_.load(); });
}

// The drawing thread may be blocked by a terminal that accepts no output: then the terminal is left
// as it is.
void TopFeed::before_suspend() {
  constexpr std::chrono::seconds patience(1);
  std::unique_lock lock(change_mutex_);
  suspension_ = Suspension::wanted;
  change_.wait_for(lock, patience, [&] { return suspension_ == Suspension::possible || released_; });
}

void TopFeed::after_suspend() {
  const std::lock_guard lock(change_mutex_);
  suspension_ = Suspension::none;
  change_.notify_all();
}

void TopFeed::release() {
  const std::lock_guard lock(change_mutex_);
  released_ = true;
  change_.notify_all();
}

void TopFeed::stand_by() {
  std::unique_lock lock(change_mutex_);
  if (suspension_ != Suspension::wanted) return;
  suspension_ = Suspension::possible;
  change_.notify_all();
  change_.wait(lock, [&] { return suspension_ != Suspension::possible; });
}

}  // namespace luaspy
