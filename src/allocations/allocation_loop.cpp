#include "allocations/allocation_loop.h"

#include <fmt/format.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "allocations/allocated_bytes.h"
#include "allocations/bursts.h"
#include "allocations/growth_probe.h"
#include "allocations/ptraced_threads.h"
#include "attach/own_cpu.h"
#include "attach/refusal.h"
#include "attach/urgency.h"
#include "sampling/probe_turns.h"
#include "sampling/process_tree.h"
#include "sampling/watchdog.h"
#include "system/signals.h"

namespace luaspy {
namespace {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

}  // namespace

// What lasts from one run to the next.
struct AllocationLoop::Kept {
  Kept(ProcessTree& of, const AllocationLoopOptions& its, AllocationSink& into, AllocationCounts& count,
       Clock::time_point since)
      : tree(of),
        sink(into),
        counts(count),
        began(since),
        of_turns(its.of_turns),
        bursts(its.max_cost),
        before_use(its.before_use),
        random(bursts.seed()) {}

  ProcessTree& tree;
  AllocationSink& sink;
  AllocationCounts& counts;
  const Clock::time_point began;
  const bool of_turns;  // AllocationLoopOptions
  BurstState bursts;
  const std::function<void()> before_use;
  std::mt19937_64 random;
  Allocators allocators;
  Clock::time_point search_at{};
  Clock::duration search_interval{};
  bool hopeless = false;  // nothing can be trapped
  bool knew_any = false;  // any Lua
  AllocatedBytes bytes;
};

// One run.
class AllocationLoop::Loop {
 public:
  Loop(Kept& kept, Clock::time_point until, Ward& ward)
      : kept_(kept),
        tree_(kept.tree),
        sink_(kept.sink),
        counts_(kept.counts),
        random_(kept.random),
        start_(kept.began),
        until_(until),
        ward_(ward),
        before_ns_(kept.counts.duration_ns),
        allocators_(kept.allocators),
        bursts_(kept.bursts, kept.sink, kept.counts, threads_,
                {kept.began, [this] { return is_over(); }, [this]() -> Allocators& { return allocators_; },
                 [this](Session& session, const std::shared_ptr<Thread>& thread, const ActiveState& active) {
                   add_allocator(session, thread, active);
                 },
                 [this](Allocator& allocator, double bytes, double counted) { pass(allocator, bytes, counted); },
                 kept.before_use}),
        search_at_(kept.search_at),
        bytes_(kept.bytes) {
    counts_.shares_cpu = usable_.size() == 1;
  }

  void run() {
    ward_.begin();
    come_at_once();
    for (const auto& allocator : allocators_) {
      allocator->probed = {};  // nothing is known of the pause
      allocator->switches = allocator->thread->voluntary_switches();
      if (!allocator->burst.is_open) (void)bursts_.prepare(*allocator);
    }
    while (!is_over()) {
      const Clock::time_point now = Clock::now();
      if (now >= tend_at_) tend(now);
      bursts_.go_on();
      const Clock::time_point next = now + pause();
      ward_.expect(next);
      bursts_.sleep_until(next);
      for (std::size_t i = 0; i < allocators_.size(); ++i) {
        visit(*allocators_[i]);
        look_at(*allocators_[i]);  // afterwards: it may take longer than a burst can wait
      }
      for (const auto& allocator : allocators_) {
        if (allocator->gone) bursts_.give_up(*allocator);
      }
      std::erase_if(allocators_, [](const auto& allocator) { return allocator->gone; });
    }
    bursts_.interrupt();
    counts_.duration_ns = duration_ns(Clock::now());
    sink_.look(counts());
  }

  static bool has_ended(const Kept& kept) {
    return kept.counts.target_ended || system::end_requested() != 0 || kept.hopeless;
  }

 private:
  bool is_over() const { return has_ended(kept_) || Clock::now() >= until_; }
  // Of all runs.
  std::int64_t duration_ns(Clock::time_point now) const { return before_ns_ + to_ns(now - run_start_); }

  // A thread can be refused for a moment: the C library blocks all signals while it makes a process.
  bool nothing_is_allowed() const {
    constexpr Clock::duration a_moment = 300ms;
    return counts_.refused && counts_.bursts == 0 && Clock::now() - kept_.bursts.refused_at > a_moment &&
           (!allocators_.empty() || !kept_.knew_any) && std::ranges::all_of(allocators_, [&](const auto& each) {
             return kept_.bursts.refused_threads.contains(each->thread->tid());
           });
  }

  // Until the next probe: random, so that no program is in step.
  Clock::duration pause() {
    constexpr double mean_ns = 400e3, most = 5;
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(mean_ns * std::min(std::exponential_distribution<double>()(random_), most)));
  }

  const AllocationCounts& counts() {
    counts_.bytes = bytes_.all();
    counts_.trapped = kept_.bursts.pace.trapped();
    counts_.spent_ns = kept_.bursts.pace.spent_ns();
    counts_.calls_a_burst = kept_.bursts.pace.calls();
    counts_.unsampled = kept_.bursts.kinds.unsampled();
    return counts_;
  }

  // What need not be done at each probe.
  void tend(Clock::time_point now) {
    constexpr Clock::duration often = 50ms;
    tend_at_ = now + often;
    bursts_.interrupt();
    guard_waits();
    tree_.update();
    const bool searches = now >= search_at_;
    if (searches) search(now);
    guard_waits();
    for (const auto& session : tree_.sessions()) session->sampler().do_deferred_work();
    threads_.tracer().let_go_pending();
    for (const pid_t tid : kept_.bursts.reaper.drain_ended([&](pid_t each) { return is_traced(each); }))
      bursts_.forget(tid);
    threads_.alarm().clear();
    if (tree_.ended()) counts_.target_ended = true;
    std::erase_if(kept_.bursts.traps, [&](const auto& trap) {
      return std::ranges::none_of(allocators_, [&](const auto& each) { return each->thread->tid() == trap.first; });
    });
    keep_off();
    for (const auto& allocator : allocators_) watch_sleep(*allocator, searches);
    kept_.hopeless = nothing_is_allowed();
    set_pace(now);
    counts_.duration_ns = duration_ns(now);
    sink_.look(counts());
  }

  bool is_traced(pid_t tid) const {
    return bursts_.traces(tid) || threads_.tracer().has_pending(tid) ||
           std::ranges::any_of(tree_.sessions(),
                               [&](const auto& session) { return session->target().tracer().has_pending(tid); });
  }

  // A thread in exec does not stop, and changes its number: a wait for it ends only by signals. Waiting for a burst's
  // signals takes the alarm away.
  void guard_waits() {
    constexpr Clock::duration often = 50ms;
    threads_.alarm().set(Clock::now() + often, often);
  }

  // Which Lua runs in which thread: a look at each thread. One that is traced may run another one by now. The
  // more looks have found nothing new, the less often they come.
  void search(Clock::time_point now) {
    constexpr Clock::duration often = 50ms, seldom = 1s;
    const std::size_t known = allocators_.size();
    for (const auto& session : tree_.sessions()) search(*session);
    Clock::duration& interval = kept_.search_interval;
    interval = allocators_.empty() || allocators_.size() > known
                   ? often
                   : std::min<Clock::duration>(interval + interval / 4, seldom);
    search_at_ = now + interval;
  }

  void search(Session& session) {
    const pid_t pid = session.target().process().pid();
    for (const auto& thread : std::vector(session.target().process().threads())) {
      const bool was_traced = bursts_.traces(thread->tid());
      const bool runs = !allocators_.empty() && thread->state().kind == ThreadState::Kind::running;
      if (was_traced && !bursts_.let_go(*thread)) continue;
      if (runs) run_on();
      guard_waits();
      kept_.bursts.reaper.watch(thread->tid(), pid);
      // One that waits now may allocate later.
      const std::optional<Sampler::Sampled> sampled = session.sampler().sample(*thread, true);
      if (sampled && sampled->sample.loss == Loss::refused && !was_traced)
        bursts_.record_refusal(thread->tid(), explain_no_stop(pid));
      if (sampled && sampled->from != nullptr) {
        for (const ActiveState& active : sampled->from->active()) add_allocator(session, thread, active);
      }
      if (was_traced) trace_again(thread->tid());
    }
  }

  // For a random time. Right after a burst a thread is where that ended, so that each look would find the same Lua; and
  // one that was just let go does not run yet: to wake it on another CPU takes tens of µs.
  void run_on() {
    constexpr std::int64_t shortest_ns = 200'000, longest_ns = 2'000'000;
    std::uniform_int_distribution<std::int64_t> some(shortest_ns, longest_ns);
    bursts_.sleep_until(Clock::now() + std::chrono::nanoseconds(some(kept_.random)));
  }

  // The next burst has to begin at once.
  void trace_again(pid_t tid) {
    for (const auto& allocator : allocators_) {
      if (allocator->thread->tid() == tid && !allocator->burst.is_open && !allocator->gone)
        (void)bursts_.prepare(*allocator);
    }
  }

  void add_allocator(Session& session, const std::shared_ptr<Thread>& thread, const ActiveState& active) {
    constexpr std::size_t most = 256;
    kept_.knew_any = true;
    const auto known = std::ranges::find_if(
        allocators_, [&](const auto& each) { return each->session == &session && each->G == active.G; });
    if (known != allocators_.end()) {
      if ((*known)->thread->tid() == thread->tid()) return;
      bursts_.give_up(**known);
      (*known)->thread = thread;
      (*known)->predicted = {};
      (*known)->may_sleep = true;
      (*known)->calm_looks = 0;
    } else if (allocators_.size() < most) {
      allocators_.push_back(std::make_unique<Allocator>(session, thread, active, kept_.bursts.seed()));
    }
  }

  // Each stop for a burst is such a switch, too; so are the looks of a search. How often a thread sleeps
  // is seen some ms late: it is believed to sleep until a second has passed without.
  void watch_sleep(Allocator& allocator, bool searched) {
    constexpr int calm = 20;  // looks
    const std::int64_t switches = allocator.thread->voluntary_switches() - bursts_.stops(allocator.thread->tid());
    const bool slept = switches > std::exchange(allocator.switches, switches) && !searched;
    allocator.calm_looks = slept ? 0 : allocator.calm_looks + 1;
    allocator.may_sleep = allocator.calm_looks < calm;
  }

  void keep_off() {
    if (ward_.has_starved() && !ward_.stays_still()) return;  // where it was kept
    std::vector<int> others = usable_;
    for (const auto& allocator : allocators_) std::erase(others, allocator->thread->cpu());
    if (others == kept_to_) return;
    (void)stay_on(others.empty() ? usable_ : others);
    if (!others.empty()) ward_.stays();
    kept_to_ = std::move(others);
  }

  // The interval of the gates, from what was allocated lately and what the cost allows: if that is of all of
  // the program's time, the runs may take what the pauses have saved.
  void set_pace(Clock::time_point now) {
    constexpr double least_bytes = 64;
    constexpr Clock::duration long_enough = 50ms;
    if (now - paced_ < long_enough) return;
    const double rate = bytes_.rate(to_ns(now - std::exchange(paced_, now)));
    if (rate == 0) return;
    const double bursts = kept_.bursts.pace.bursts_a_second(paced_ns(now));
    for (const auto& allocator : allocators_) allocator->gate.set_interval(std::max(rate / bursts, least_bytes));
  }

  double bytes_a_pass() const { return bytes_.a_pass(paced_ns(Clock::now())); }
  // The time of which max_cost is.
  std::int64_t paced_ns(Clock::time_point now) const { return kept_.of_turns ? duration_ns(now) : to_ns(now - start_); }

  void look_at(Allocator& allocator) {
    if (allocator.gone || allocator.objects == nullptr) return;
    sink_.look_at(*allocator.session, allocator.G, allocator.identity, to_ns(Clock::now() - start_),
                  *allocator.objects);
  }

  // What was allocated in some µs, or nothing if the program did not run, stands for the time since the
  // probe before.
  // A block of a MB that is seen, or a probe that comes late, would make one sample as heavy as a hundred
  // others. So neither counts more than it usually does. The calls after that block are no more probable
  // for it, and a probe is late wherever the program is.
  // Where luaspy and the program have one CPU together, the program never runs between two reads, and a
  // program that wakes for some µs is hardly ever met. Then it is what the heap has grown since the probe before.
  void visit(Allocator& allocator) {
    constexpr double most_seen = BurstSums::most_bytes, most_gap_ns = 1.2e6;
    if (allocator.is_another()) renew(allocator);
    if (allocator.gone) return;
    if (allocator.burst.is_open) {
      if (!bursts_.watch(allocator)) search_at_ = {};
      return;
    }
    const std::optional<Growth> seen = look_at_growth(allocator.memory, allocator.lua, allocator.G);
    if (!seen) {
      allocator.gone = true;
      return;
    }
    const Clock::time_point now = Clock::now(), last = std::exchange(allocator.probed, now);
    const std::int64_t grown = seen->heap - std::exchange(allocator.heap_bytes, seen->heap);
    if (last == Clock::time_point()) return;
    allocator.runs.add(grown);
    allocator.seen_by_growth = allocator.may_sleep && allocator.runs.are_short() && fits_bursts(allocator);
    if (counts_.shares_cpu || allocator.seen_by_growth) {
      const auto bytes = static_cast<double>(std::max<std::int64_t>(grown, 0));
      pass(allocator, bytes, bytes);
    } else {
      const auto gap_ns = static_cast<double>(to_ns(now - last));
      double at_once = seen->at_once.in(std::min(gap_ns, most_gap_ns));
      if (at_once > 0) at_once *= std::min(1.0, most_seen / seen->at_once.bytes);
      bytes_.look(seen->apart.in(gap_ns), at_once);
      pass_gate(allocator, at_once);
    }
    if (allocator.chosen == 0) return;
    bursts_.start(allocator, std::exchange(allocator.chosen, 0) * allocator.gate.interval() * bytes_a_pass());
    if (!allocator.gone && !allocator.burst.is_open)
      (void)bursts_.prepare(allocator);  // the next one has to begin at once
  }

  // What its bursts stood for can no longer be sampled.
  void renew(Allocator& allocator) {
    bursts_.give_up(allocator);
    if (allocator.renew()) return;
    allocator.gone = true;
    search_at_ = {};
  }

  // Can bursts be spread over what it allocates at a time? Its first burst shows how many calls that is.
  bool fits_bursts(const Allocator& allocator) const {
    return allocator.usual.growing == 0 ||
           allocator.runs.usual() <= kept_.bursts.pace.most_spread() * allocator.usual.mean();
  }

  // So much was allocated, which is known; of that, `counted` decides when to trap.
  void pass(Allocator& allocator, double bytes, double counted) {
    const double passes = counted / bytes_a_pass();
    bytes_.add(bytes, passes);
    pass_gate(allocator, passes);
  }

  static void pass_gate(Allocator& allocator, double bytes) {
    if (allocator.gate.is_open()) allocator.chosen += allocator.gate.pass(bytes);
  }

  Kept& kept_;
  ProcessTree& tree_;
  AllocationSink& sink_;
  AllocationCounts& counts_;
  std::mt19937_64& random_;
  const Clock::time_point start_;  // of the recording
  const Clock::time_point run_start_ = Clock::now(), until_;
  Ward& ward_;
  const std::int64_t before_ns_;  // how long earlier runs took
  Allocators& allocators_;
  PtracedThreads threads_;
  Bursts bursts_;
  Clock::time_point tend_at_{}, paced_ = run_start_;
  Clock::time_point& search_at_;
  AllocatedBytes& bytes_;
  const std::vector<int> usable_ = usable_cpus();
  std::vector<int> kept_to_;
};

AllocationLoop::AllocationLoop(ProcessTree& tree, const AllocationLoopOptions& options, AllocationSink& sink,
                               AllocationCounts& counts, Clock::time_point began)
    : kept_(std::make_unique<Kept>(tree, options, sink, counts, began)) {}
AllocationLoop::~AllocationLoop() = default;

// The kernel releases what a thread traces after pthread_join(3) has returned, but before the thread
// is gone from /proc.
Result<void> AllocationLoop::run_until(Clock::time_point until) {
  struct Run {
    Kept& kept;
    Clock::time_point until;
    Ward& ward;
    pid_t thread = 0;
  };
  Watchdog watchdog(2, usable_cpus());
  watchdog.end_at(until);
  Run run{*kept_, until, watchdog.ward(1)};
  const auto run_loop = [](void* argument) -> void* {
    Run& its = *static_cast<Run*>(argument);
    its.thread = ::gettid();
    Loop(its.kept, its.until, its.ward).run();
    its.ward.end();
    return nullptr;
  };
  pthread_t thread;
  if (!start_thread(thread, run_loop, &run)) return Error{Cause::internal, "Cannot start a thread."};
  Clock::time_point ended_at{};
  const auto ended = [&] {
    constexpr long often_ns = 50'000'000, second_ns = 1'000'000'000;
    timespec soon{};
    ::clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += often_ns;
    if (soon.tv_nsec >= second_ns) soon.tv_nsec -= second_ns, ++soon.tv_sec;
    return pthread_timedjoin_np(thread, nullptr, &soon) == 0;
  };
  constexpr Clock::duration patience = 150ms;
  bool helped = false;
  const auto expect_soon = [&] { watchdog.main().expect(Clock::now() + 50ms); };
  for (expect_soon(); !ended(); expect_soon()) {
    kept_->bursts.reaper.reap();
    const bool ends = Clock::now() >= until || system::end_requested() != 0;
    if (ended_at == Clock::time_point() && ends) ended_at = Clock::now();
    if (helped || ended_at == Clock::time_point() || Clock::now() - ended_at < patience) continue;
    helped = true;  // it may starve, and the watchdog, too
    (void)move(thread, others_than(Thread(::getpid(), run.thread).cpu(), usable_cpus()));
    make_ordinary(thread);
  }
  if (Loop::has_ended(*kept_) || system::end_requested() != 0) watchdog.help_main_to_end();
  const std::string place = fmt::format("/proc/self/task/{}", run.thread);
  while (std::filesystem::exists(place)) (void)system::sleep_until(Clock::now() + 50us);
  const AllocationCounts& counts = kept_->counts;
  if (counts.refused && counts.bursts == 0) return *counts.refused;
  return {};
}

bool AllocationLoop::ended() const { return Loop::has_ended(*kept_); }

std::int64_t AllocationLoop::open_bursts() const {
  return std::ranges::count_if(kept_->allocators, [](const auto& allocator) { return allocator->burst.is_open; });
}

void AllocationLoop::forget(SampledProcess& process) {
  std::erase_if(kept_->allocators, [&](const auto& allocator) { return allocator->session == &process; });
}

Result<void> run_allocation_loop(ProcessTree& tree, const AllocationLoopOptions& options, AllocationSink& sink,
                                 AllocationCounts& counts) {
  const Clock::time_point began = Clock::now();
  AllocationLoop loop(tree, options, sink, counts, began);
  Result<void> ran = run_probes(tree, {&loop}, end_of(began, options.duration));
  counts.cut += loop.open_bursts();
  return ran;
}

}  // namespace luaspy
