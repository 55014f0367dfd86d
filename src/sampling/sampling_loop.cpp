#include "sampling/sampling_loop.h"

#include <random>
#include <utility>

#include "attach/own_cpu.h"
#include "sampling/cpu_samplers.h"
#include "sampling/debuginfod.h"
#include "sampling/probe_turns.h"
#include "sampling/process_tree.h"
#include "sampling/tick_evaluator.h"
#include "system/calls.h"

namespace luaspy {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

class SamplingLoop::Loop {
 public:
  Loop(ProcessTree& tree, const LoopOptions& options, SampleSink& sink, LoopCounts& counts)
      : tree_(tree),
        options_(options),
        sink_(sink),
        counts_(counts),
        grid_(options.rate, Clock::now(), std::random_device{}()),
        start_(grid_.time_of(0)),
        evaluator_(tree.tables(), sink, counts, start_, grid_.interval()),
        watchdog_(1 + usable_cpus().size(), usable_cpus()) {
    if (options.duration) watchdog_.end_at(ends_at());
    sink.begin(start_);
  }

  void run_until(Clock::time_point until) {
    until_ = until;
    fetch_debug_files_later();
    watchdog_.end_at(std::min(until_, ends_at()));
    watchdog_.main().expect(Clock::now());
    come_soon();  // what the CPU samplers have read must be evaluated before their ring buffers are full
    cpu_of_pauses_ += tree_.cpu_use() - cpu_;
    while (!is_over()) {
      begin();
      while (!is_over() && !system::suspend_requested()) {
        sleep(next_look());
        look();
      }
      end();
      if (ended() || !system::suspend_requested()) continue;
      suspend();
      cpu_of_pauses_ += tree_.cpu_use() - cpu_;
    }
    counts_.duration_ns = duration_ns();
  }

  bool ended() const {
    return counts_.target_ended || system::end_requested() != 0 || sink_.has_enough() || Clock::now() >= ends_at();
  }
  Clock::time_point start() const { return start_; }

  void forget(SampledProcess& process) {
    if (samplers_ != nullptr) {
      // No CPU sampler looks at the process any more when track() returns: what it has found until then is taken.
      const std::vector<std::shared_ptr<TrackedThread>> dropped = samplers_->track(processes(&process));
      const Clock::time_point now = Clock::now();
      for (const auto& left : dropped) evaluator_.count(*left);
      drain(now);
    }
    const Clock::time_point now = Clock::now();
    if (tree_.sessions().size() > 1) sink_.end(process.pid(), {to_ns(now - start_), 0});
  }

 private:
  bool is_over() const { return ended() || Clock::now() >= until_; }
  std::int64_t duration_ns() const { return to_ns(Clock::now() - start_); }
  Clock::time_point ends_at() const { return end_of(start_, options_.duration); }

  void begin() {
    begun_ = Clock::now();
    samplers_ = std::make_unique<CpuSamplers>(CpuSamplerOptions{grid_, tree_.sampler_options().idle, options_.kernel},
                                              options_.max_stopped, options_.always_stop, watchdog_);
    skipped_ = 0, ticks_before_ = counts_.ticks, unheard_before_ = counts_.unheard;
    samplers_->track(processes());
    evaluator_.give_predictions(samplers_->tracked());
  }

  // `but`: it is just being dropped.
  std::vector<SampledProcess*> processes(const SampledProcess* but = nullptr) const {
    std::vector<SampledProcess*> processes;
    for (const auto& session : tree_.sessions()) {
      if (session != nullptr && session.get() != but) processes.push_back(session.get());
    }
    return processes;
  }

  // Soon after a tick, so that the next one can use what this one has read. At high rates, several
  // ticks are taken at once, as many as a CPU sampler has room for, but only after the first half
  // second, which shows what has to be read.
  Clock::time_point next_look() const {
    constexpr Clock::duration most_often = 2ms, often_enough = 20ms, least_often = 100ms, most_behind = 2ms,
                              first = 500ms;
    const Clock::time_point now = Clock::now();
    const Clock::duration behind = 1ms + std::min<Clock::duration>(grid_.interval() / 4, most_behind);
    const bool has_many = tree_.sampler_options().idle;  // one result per sleeping thread and tick
    const Clock::duration pause = has_many || now - start_ < first
                                      ? most_often
                                      : std::clamp<Clock::duration>(grid_.interval() * 16, most_often, often_enough);
    const Clock::time_point next = std::max(grid_.time_of(grid_.after(now)) + behind, now + pause);
    return std::min({next, now + least_often, until_, ends_at()});
  }

  // What is born meanwhile is looked at from the next tick on.
  void sleep(Clock::time_point until) {
    constexpr Clock::duration apart = 250us;  // in a storm of births
    watchdog_.main().expect(until);
    while (tree_.wait(until) && !is_over() && !system::suspend_requested()) {
      update();
      track();
      (void)system::sleep_until(std::min(until, Clock::now() + apart));
    }
  }

  void update() {
    tree_.update();
    // The heaps of the target end with its program, too.
    if (!tree_.has_target()) return;
    if (std::exchange(program_, tree_.target().program()) != tree_.target().program())
      sink_.end(tree_.target().target().process().pid(), {to_ns(Clock::now() - start_), 0});
  }

  // Of a host, which has many processes, threads are counted less often than threads are looked at.
  void track() {
    constexpr Clock::duration apart = 100ms;
    const Clock::time_point now = Clock::now();
    if (!tree_.has_target() && now - tracked_ < apart) return;
    tracked_ = now;
    for (const auto& left : samplers_->track(processes())) evaluator_.count(*left);
  }

  void look() {
    const Clock::time_point now = Clock::now();
    drain(now);
    samplers_->interrupt_long_waits();
    counts_.unheard = unheard_before_ + samplers_->unheard();
    counts_.precedence = samplers_->precedence();
    sink_.look(counts_);
    if (target_ended(now)) counts_.target_ended = true;
    if (now - cpu_asked_ > 100ms) ask_cpu_time();
    update();
    for (const auto& session : tree_.sessions()) session->sampler().do_deferred_work();
    track();
    samplers_->keep_off();
  }

  void end() {
    const bool ends = is_over();
    if (ends) watchdog_.end_at(Clock::now());
    watchdog_.main().expect(Clock::now());
    ask_cpu_time();
    samplers_->stop();
    counts_.sampled_ns += to_ns(Clock::now() - begun_);
    drain(Clock::now());
    evaluator_.keep_predictions(samplers_->tracked());
    samplers_ = nullptr;
    if (ends) watchdog_.help_main_to_end();
    sink_.look(counts_);
    watchdog_.main().pause();
  }

  // Of a target that is not luaspy's child, what it has used since the last call is lost with it.
  void ask_cpu_time() {
    cpu_asked_ = Clock::now();
    const CpuUse use = tree_.cpu_use();
    counts_.cpu = use - cpu_of_pauses_;
    cpu_ = use;
  }

  void drain(Clock::time_point until) {
    samplers_->drain(until, [&](TickResult& found) { evaluator_.evaluate(found); });
    for (const auto& thread : samplers_->tracked()) evaluator_.count(*thread);
    const std::int64_t skipped = samplers_->skipped();
    sink_.add_loss(Loss::skipped, skipped - std::exchange(skipped_, skipped));
    counts_.ticks = ticks_before_ + samplers_->ticks();
    counts_.duration_ns = to_ns(until - start_);
    if (options_.renews_tables) evaluator_.renew_full_tables(counts_.duration_ns);
  }

  // Of a process that luaspy has started, one system call tells that it has ended. Else asking costs
  // more than a look at a thread, and the end of a thread is a hint, too.
  bool target_ended(Clock::time_point now) {
    if (!tree_.has_target()) return false;
    constexpr std::chrono::seconds ask_again(1);
    bool none_left = true;
    for (const auto& session : tree_.sessions()) none_left &= session->target().process().threads().empty();
    const bool launched = tree_.has_target() && tree_.target().launched();
    const bool command_ends = launched && !command_ended_ && tree_.target().ended();
    command_ended_ |= command_ends;
    const bool thread_ended = evaluator_.thread_ended();
    if (!none_left && !thread_ended && !command_ends && now - asked_ <= ask_again) return false;
    asked_ = now;
    return tree_.ended();
  }

  // The pause is charged to no thread; its ticks are not counted.
  void suspend() {
    sink_.before_suspend();
    system::suspend();
    sink_.after_suspend();
  }

  ProcessTree& tree_;
  const LoopOptions& options_;
  SampleSink& sink_;
  LoopCounts& counts_;
  TickGrid grid_;
  const Clock::time_point start_;
  TickEvaluator evaluator_;
  Watchdog watchdog_;
  Clock::time_point until_ = Clock::time_point::max(), begun_{};  // begun_: this run
  std::unique_ptr<CpuSamplers> samplers_;                         // nullptr: it pauses
  std::int64_t skipped_ = 0, ticks_before_ = 0, unheard_before_ = 0;
  CpuUse cpu_, cpu_of_pauses_;  // as asked last; of these: used in pauses
  Clock::time_point asked_ = start_, cpu_asked_ = start_, tracked_{};
  std::uint64_t program_ = tree_.has_target() ? tree_.target().program() : 0;  // which the target executes
  bool command_ended_ = false;
};

// The kernel may take a second to make the first perf event, if real-time threads have all CPUs: it waits for
// ordinary threads of its own (synchronize_rcu() in perf_event_alloc()). So that is done before the time of the
// recording begins.
SamplingLoop::SamplingLoop(ProcessTree& tree, const LoopOptions& options, SampleSink& sink, LoopCounts& counts) {
  tree.watch_births();
  loop_ = std::make_unique<Loop>(tree, options, sink, counts);
}
SamplingLoop::~SamplingLoop() = default;

Result<void> SamplingLoop::run_until(Clock::time_point until) {
  loop_->run_until(until);
  return {};
}
bool SamplingLoop::ended() const { return loop_->ended(); }
Clock::time_point SamplingLoop::start() const { return loop_->start(); }
void SamplingLoop::forget(SampledProcess& process) { loop_->forget(process); }

void run_loop(ProcessTree& tree, const LoopOptions& options, SampleSink& sink, LoopCounts& counts) {
  SamplingLoop loop(tree, options, sink, counts);
  (void)run_probes(tree, {&loop}, Clock::time_point::max());
}

}  // namespace luaspy
