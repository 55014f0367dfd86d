#include "top/top_feed.h"

#include <utility>

#include "recording/metadata_of_target.h"
#include "sampling/process_tree.h"
#include "top/top_view.h"

namespace luaspy {
namespace {

std::int64_t window_ns(const TopTarget& target) { return static_cast<std::int64_t>(target.window * 1e9); }

}  // namespace

TopFeed::TopFeed(ProcessTree& tree, TopTarget target, Metadata about, Mode mode, Output output)
    : tree_(tree),
      heaps_(output == Output::plain ? std::nullopt : std::optional(window_ns(target))),
      about_(std::move(about)),
      target_(std::move(target)),
      shown_(mode) {
  if (output == Output::plain) {
    add_table(mode, std::nullopt);
    return;
  }
  history_.emplace(tree_.tables(), about_);
  if (mode == Mode::native) add_table(mode, window_ns(target_));
  else
    for (const Mode one : switched_modes) add_table(one, window_ns(target_));
}

// Each table keeps what its mode shows, so that the modes can be switched at any time.
void TopFeed::add_table(Mode mode, std::optional<std::int64_t> window) {
  tables_.emplace(std::piecewise_construct, std::forward_as_tuple(mode),
                  std::forward_as_tuple(tree_.tables(), mode, window));
}

void TopFeed::add(ThreadId thread, const Tick& tick, const Sample& sample) {
  const std::lock_guard lock(mutex_);
  if (history_) history_->add(thread, tick, sample);
  heaps_.add(tree_.tables().threads[thread].pid, tick.at_ns, sample.heaps);
  for (auto& [mode, table] : tables_) table.add(thread, tick.weight, sample);
}

void TopFeed::add_idle(ThreadId thread, std::int64_t count) {
  const std::lock_guard lock(mutex_);
  if (history_) history_->add_idle(count);
  for (auto& [mode, table] : tables_) table.add_idle(thread, count);
}

void TopFeed::add_waiting(ThreadId thread, std::int64_t count) {
  const std::lock_guard lock(mutex_);
  if (history_) history_->add_waiting(count);
  for (auto& [mode, table] : tables_) table.add_waiting(thread, count);
}

void TopFeed::add_loss(Loss loss, std::int64_t count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  for (auto& [mode, table] : tables_) table.add_loss(loss, count);
  if (history_) history_->add_loss(loss, count);
}

void TopFeed::end(int pid, const Tick& tick) {
  const std::lock_guard lock(mutex_);
  heaps_.end(pid, tick.at_ns);
  if (history_) history_->end(pid, tick);
}

void TopFeed::tables_renewed() {
  const std::lock_guard lock(mutex_);
  for (auto& [mode, table] : tables_) table.forget_stacks();
  if (history_) history_->begin_anew();
}

void TopFeed::look(const LoopCounts& counts) {
  if (counts.ticks != ticks_) {
    const std::lock_guard lock(mutex_);
    sampled_ns_ = counts.duration_ns;
    for (auto& [mode, table] : tables_) table.end_tick(counts.duration_ns - duration_ns_, counts.ticks - ticks_);
    ticks_ = counts.ticks, duration_ns_ = counts.duration_ns;
    cpu_ = counts.cpu, sampled_cpu_ns_ = counts.sampled_cpu_ns;
    target_.cpu = cpu_ - cpu_before_, target_.sampled_cpu_ns = sampled_cpu_ns_ - sampled_cpu_before_;
    if (history_) history_->advance(ticks_, duration_ns_, counts.cpu);
  }
  constexpr std::chrono::milliseconds ask_again(250);
  if (system::Clock::now() - luas_asked_ > ask_again) ask_luas();
}

void TopFeed::ask_luas() {
  luas_asked_ = system::Clock::now();
  Metadata now = about_;  // only this side changes it
  describe_program(tree_, now);
  describe_luas(tree_, now);
  const std::lock_guard lock(mutex_);
  if (now.luas.empty()) now.luas = about_.luas;
  about_ = std::move(now);
  for (const std::string& lua : about_.luas) {
    if (!lua.starts_with("LuaJIT")) continue;
    for (auto& [mode, table] : tables_) table.set_luajit();
  }
  target_.luas = about_.luas;
  target_.lua_mapped |= about_.lua_mapped;
  target_.command = about_.command;
  target_.processes = tree_.sessions().size();
  if (history_) history_->set_metadata(about_);
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
  counts = tables_.at(shown_).counts();
  target_.heap = heaps_.now(sampled_ns_);
  target = target_;
}

void TopFeed::drain(TopCounts& counts, TopTarget& target) {
  const std::lock_guard lock(mutex_);
  counts = tables_.at(shown_).counts();
  target_.heap = heaps_.now(sampled_ns_);
  target = target_;
  for (auto& [mode, table] : tables_) table.begin_window();
  heaps_.begin_window(sampled_ns_);
}

std::string TopFeed::executable() {
  const std::lock_guard lock(mutex_);
  return about_.executable;
}

void TopFeed::show(Mode mode) {
  const std::lock_guard lock(mutex_);
  if (tables_.contains(mode)) shown_ = mode;
}

void TopFeed::reset() {
  const std::lock_guard lock(mutex_);
  for (auto& [mode, table] : tables_) table.reset();
  heaps_.reset(sampled_ns_);
  cpu_before_ = cpu_, sampled_cpu_before_ = sampled_cpu_ns_;
  target_.cpu = {}, target_.sampled_cpu_ns = 0;
  if (history_) history_->begin_anew();
}

std::optional<TopSeen> TopFeed::latest(const TopRow& row) {
  const std::lock_guard lock(mutex_);
  return tables_.at(shown_).latest(row);
}

std::string TopFeed::recording() {
  const std::lock_guard lock(mutex_);
  return history_ ? history_->recording() : "";
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
