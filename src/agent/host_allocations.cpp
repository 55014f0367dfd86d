#include "agent/host_allocations.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "attach/proc_files.h"
#include "base/say.h"
#include "sampling/process_tree.h"
#include "system/signals.h"

namespace luaspy {
namespace {

using Clock = system::Clock;

constexpr double turn_cost = 0.2;  // how much of its time a program may lose in a turn: turns are seldom

std::int64_t own_cpu_ns() {
  const std::optional<ProcessCpuTime> used = cpu_time_of(::getpid());
  return used ? used->ns : 0;
}

}  // namespace

HostAllocations::HostAllocations(ProcessTree& tree, const Bounds& bounds, std::uint64_t seed)
    : tree_(tree),
      most_cpu_(bounds.cpu),
      shortest_pause_(std::max(turn_cost / bounds.stopped - 1, 4.0)),
      random_(seed),
      bytes_(tree.tables(), Unit::bytes),
      objects_(tree.tables(), Unit::objects),
      next_turn_(Clock::now() + std::chrono::seconds(1)) {
  renew_loop();
}

void HostAllocations::renew_loop() {
  counts_ = {};
  AllocationLoopOptions options;
  options.of_turns = true;
  options.max_cost = 100 * turn_cost;
  loop_ = std::make_unique<AllocationLoop>(tree_, options, *this, counts_, Clock::now());
}

Clock::duration HostAllocations::until_turn() const {
  return std::max(next_turn_ - Clock::now(), Clock::duration::zero());
}

// A loop that has found nothing that it may trap is over; programs that come later may be others.
Result<void> HostAllocations::run_until(Clock::time_point until) {
  const std::int64_t cpu_ns = own_cpu_ns();
  const Clock::duration turn = until - Clock::now();
  const double pause = pause_ * std::uniform_real_distribution<double>(0.5, 1.5)(random_);
  stands_for_ = 1 + pause;
  if (loop_->ended() && system::end_requested() == 0) renew_loop();
  if (const Result<void> ran = loop_->run_until(until); !ran && ran.error().text != refused_) {
    refused_ = ran.error().text;
    say("luaspy agent: allocations are not seen: {}\n", refused_);
  }
  cpu_ns_ += own_cpu_ns() - cpu_ns;
  next_turn_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(turn * pause);
  return {};
}

void HostAllocations::add(ThreadId thread, const Tick& tick, const AllocationSample& allocation, Sample& sample) {
  ++samples_;
  sample.heaps.clear();  // those of the beginning of an allocation
  // While it stands still in a turn, a program allocates nothing.
  const double still = static_cast<double>(counts_.spent_ns) /
                       static_cast<double>(std::max<std::int64_t>(counts_.duration_ns, 1));
  const double of_all = stands_for_ / (1 - std::min(still, 2 * turn_cost));
  bytes_.add(thread, {tick.at_ns, std::llround(allocation.bytes * of_all)}, sample);
  objects_.add(thread, {tick.at_ns, std::llround(allocation.calls * of_all)}, sample);
}

void HostAllocations::end_window(std::int64_t passed_ns) {
  constexpr double longest = 1000, at_once = 2;  // turns; how much shorter or longer at a time
  used_ = static_cast<double>(std::exchange(cpu_ns_, 0)) / static_cast<double>(std::max<std::int64_t>(passed_ns, 1));
  if (used_ == 0) return;  // there was no turn
  const double wanted = (1 + pause_) * used_ / most_cpu_ - 1;
  pause_ = std::clamp(std::clamp(wanted, pause_ / at_once, pause_ * at_once), shortest_pause_, longest);
}

}  // namespace luaspy
