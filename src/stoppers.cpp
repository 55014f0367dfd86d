#include "stoppers.h"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "attach/own_cpu.h"

namespace luaspy {
namespace {

using Clock = system::Clock;
using system::to_ns;
using namespace std::chrono_literals;

}  // namespace

// What it finds goes through a ring: one thread puts in, another one takes out, neither waits.
class Stoppers::Stopper {
 public:
  Stopper(Stoppers& all, int cpu, int place) : all_(all), cpu_(cpu), phase_(place % 4) {}
  ~Stopper() {
    if (exists_) pthread_join(thread_, nullptr);
    sem_destroy(&wanted_);
  }

  int cpu() const { return cpu_; }
  bool active() const { return active_; }
  bool real_time() const { return real_time_; }
  std::int64_t waits_since() const { return tracer_.waits_since(); }

  void deactivate() { active_ = false; }
  void activate() {
    asked_again_ = true;
    if (active_.exchange(true)) return;
    if (!exists_) begin();
    else sem_post(&wanted_);
  }
  void end() {
    ends_ = true;
    sem_post(&wanted_);
  }
  void interrupt() {
    if (exists_) pthread_kill(thread_, SIGALRM);
  }
  bool has_ended() const { return ended_ || !exists_; }

  // The main thread's end of the ring.
  Found* front() { return taken_ == put_.load(std::memory_order_acquire) ? nullptr : ring_[taken_ % ring_size].get(); }
  void pop() { taken_.store(taken_ + 1, std::memory_order_release); }

 private:
  static constexpr std::size_t ring_size = 128;

  void begin();
  static void* main(void* self);
  void run();
  void park();
  void tick(std::int64_t number, Clock::time_point due);
  void consider(const std::shared_ptr<Watch>& watch, std::int64_t number);
  void settle_candidates(std::int64_t number, bool in_time);
  bool executes(const Watch& watch, const Thread::Schedule& now, bool alone);
  void ask(const std::shared_ptr<Watch>& watch, const Thread::Schedule& before, std::int64_t number, bool remote);
  void wait_until(Clock::time_point due);
  void look_at_sleeping(const std::shared_ptr<Watch>& watch, const Thread::Schedule& now, std::int64_t number);
  void account(Watch& watch, std::int64_t number, const Thread::Schedule& now, bool slept);
  bool is_asked(Watch& watch, std::int64_t number);
  Found* open_found(const std::shared_ptr<Watch>& watch, std::int64_t number);
  void put() { put_.store(put_ + 1, std::memory_order_release); }
  void waits(const std::shared_ptr<Watch>& watch, std::int64_t number, const Thread::Schedule& now);

  struct Candidate {
    std::shared_ptr<Watch> watch;
    Thread::Schedule now;
    bool remote;
  };
  // A thread that executed at a tick, and was asked to stop. It does when it has the CPU again, which somebody else may have meanwhile.
  struct Asked {
    std::shared_ptr<Watch> watch;
    std::unique_ptr<Stop> stop;
    Thread::Schedule before;
    std::int64_t number, weight_ns;
    Clock::time_point woke;
    bool remote;
  };
  void arrived(Asked asked);
  void count_stop(const Asked& asked, Found& found);

  Stoppers& all_;
  const int cpu_;
  const int phase_;
  pthread_t thread_{};
  bool exists_ = false;
  std::atomic<bool> active_ = false, ends_ = false, ended_ = false, real_time_ = false, asked_again_ = false;
  sem_t wanted_{};
  Tracer tracer_{50ms};
  std::vector<Candidate> candidates_;
  std::vector<Asked> asked_;
  std::unique_ptr<system::Alarm> alarm_;    // this thread's
  Clock::time_point woke_;
  std::int64_t weight_ns_ = 0;              // of the thread being accounted for
  std::unique_ptr<Thread> own_thread_;
  std::optional<std::int64_t> clock_offset_;   // system::Clock minus the scheduler's clock, ns
  Clock::time_point offset_asked_;
  std::array<std::unique_ptr<Found>, ring_size> ring_;
  std::atomic<std::size_t> put_ = 0, taken_ = 0;
};

void Stoppers::Stopper::begin() {
  sem_init(&wanted_, 0, 0);
  // Signals are the main thread's to hear of; SIGALRM ends a wait.
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGALRM);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  exists_ = pthread_create(&thread_, nullptr, main, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!exists_) active_ = false;
}

void* Stoppers::Stopper::main(void* self) {
  static_cast<Stopper*>(self)->run();
  return nullptr;
}

void Stoppers::Stopper::run() {
  (void)stay_on({cpu_});
  real_time_ = come_at_once();
  own_thread_ = std::make_unique<Thread>(::getpid(), ::gettid());
  alarm_ = std::make_unique<system::Alarm>();
  constexpr Clock::duration linger = 2s;
  Clock::time_point needed = Clock::now();
  std::int64_t number = 0;
  const auto phase = all_.grid_.interval() * phase_ / 16;   // so that stoppers of one process do not meet
  while (!ends_) {
    number = std::max(number + 1, all_.grid_.after(Clock::now() - phase));
    const Clock::time_point due = all_.grid_.time_of(number) + phase;
    wait_until(due);
    if (ends_) break;
    woke_ = Clock::now();
    tick(number, due);
    if (asked_again_.exchange(false) || !asked_.empty()) needed = woke_;
    if (woke_ - needed > linger) {
      park();
      needed = Clock::now();
    }
  }
  // What is still asked is let go as soon as it stops, or by the end of this thread.
  for (const Clock::time_point end = Clock::now() + 1s; (!asked_.empty() || tracer_.has_pending()) && Clock::now() < end;) wait_until(Clock::now() + 5ms);
  for (const Asked& asked : asked_) asked.watch->asked_by = -1;
  asked_.clear();
  alarm_ = nullptr;
  ended_ = true;
}

// Until it is due, takes care of the threads that were asked to stop, each as soon as it does.
void Stoppers::Stopper::wait_until(Clock::time_point due) {
  constexpr Clock::duration soon = 20us;   // an alarm that is set for then might come before the wait
  while (Clock::now() < due - (asked_.empty() ? 0us : soon)) {
    if (asked_.empty() && !tracer_.has_pending()) {
      if (system::sleep_until(due) || ends_) return;
      continue;
    }
    alarm_->set(due);
    pid_t tid = 0;
    const system::WaitStatus status = system::wait_for_any(tid);
    if (status.kind == system::WaitStatus::Kind::interrupted) {
      if (ends_) return;
      continue;
    }
    if (tid <= 0) {   // nothing is traced: whoever was asked has gone
      for (const Asked& asked : asked_) asked.watch->asked_by = -1;
      asked_.clear();
      tracer_.forget_all();   // else the next wait would return at once, and a real-time thread spin
      continue;
    }
    const auto asked = std::ranges::find_if(asked_, [&](const Asked& each) { return each.stop->tid() == tid; });
    if (asked == asked_.end()) {
      if (status.kind == system::WaitStatus::Kind::ended) tracer_.forget(tid);
      else if (status.kind == system::WaitStatus::Kind::stopped) (void)system::detach(tid, status.signal);
      continue;
    }
    Asked taken = std::move(*asked);
    asked_.erase(asked);
    taken.stop->arrive(status);
    arrived(std::move(taken));
  }
}

// Nothing of the target has executed here for long. Whoever sleeps is looked after by another one.
void Stoppers::Stopper::park() {
  if (!all_.retire(*this)) return;
  while (!ends_ && !active_) (void)sem_wait(&wanted_);
}

void Stoppers::Stopper::tick(std::int64_t number, Clock::time_point due) {
  if (!all_.begin_tick(number, woke_)) return;
  // Who wakes late comes when the target lets him: at the end of its slices, and at system calls that make the kernel look at the clock.
  // Measured as an ordinary user beside 8 threads, a call with 2.1 % of the time: 2.3 % of those within 30 µs, 4.2 % within 60, 6.5 % within 150.
  constexpr Clock::duration at_once = 40us;
  const bool in_time = real_time_ || woke_ - due < at_once;
  const std::shared_ptr<const Roster> roster = all_.roster();
  candidates_.clear();
  for (const std::shared_ptr<Watch>& watch : *roster) {
    if (!watch->claim.try_take()) continue;
    if (watch->tick < number && (watch->cpu == cpu_ || !watch->slept) && !is_asked(*watch, number)) consider(watch, number);
    else watch->claim.give_back();
  }
  settle_candidates(number, in_time);
}

// One that was asked to stop is its stopper's until it does. It was counted where it executed.
bool Stoppers::Stopper::is_asked(Watch& watch, std::int64_t number) {
  if (watch.asked_by == -1) return false;
  if (watch.asked_by != cpu_) return true;
  const Thread::Schedule now = watch.thread->schedule();
  const bool ran = now.runs == 0 || now.on_cpu != watch.schedule.on_cpu;
  account(watch, number, now, false);
  ++(ran ? watch.not_stopped : watch.waited);   // a thread without a CPU cannot stop
  return true;
}

// A claim is kept for candidates, and given back for all others.
void Stoppers::Stopper::consider(const std::shared_ptr<Watch>& watch, std::int64_t number) {
  const bool mine = watch->cpu == cpu_;
  const Thread::Schedule now = watch->thread->schedule();
  const bool ran = now.runs == 0 || now.runs != watch->schedule.runs;
  if (mine && watch->slept && !ran) {
    account(*watch, number, now, true);
    if (!all_.idle_) ++watch->idle;
    else if (Found* const found = open_found(watch, number)) found->kind = Found::Kind::asleep_again, put();
    else ++watch->late;   // the main thread does not keep up
    return watch->claim.give_back();
  }
  if (!mine && !ran) return watch->claim.give_back();   // still where it was
  const Thread::Place place = watch->thread->place();
  if (place.letter == 'R' && place.cpu == cpu_) {
    watch->cpu = cpu_;
    asked_again_ = true;
    candidates_.push_back({watch, now, false});
    return;
  }
  if (place.letter == 'R' && mine) {
    if (all_.need(place.cpu)) {
      watch->cpu = place.cpu;
      watch->moved = true;
    } else {
      candidates_.push_back({watch, now, true});
      asked_again_ = true;
      return;
    }
  } else if (mine && (place.letter == '?' || place.letter == 'Z' || place.letter == 'X')) {
    account(*watch, number, now, true);
    watch->tick = std::numeric_limits<std::int64_t>::max();
    if (Found* const found = open_found(watch, number)) found->kind = Found::Kind::loss, found->loss = Loss::ended, put();
  } else if (mine) {
    look_at_sleeping(watch, now, number);
  }
  watch->claim.give_back();
}

void Stoppers::Stopper::look_at_sleeping(const std::shared_ptr<Watch>& watch, const Thread::Schedule& now, std::int64_t number) {
  if (!all_.idle_) {
    ++watch->idle;
    account(*watch, number, now, true);
    return;
  }
  const ThreadState state = watch->thread->state();
  account(*watch, number, now, state.kind == ThreadState::Kind::sleeping);
  Found* const found = open_found(watch, number);
  if (found == nullptr) {
    ++watch->late;
    return;
  }
  found->loss = Loss::moved;
  Sampler& sampler = watch->session.sampler();
  if (state.kind == ThreadState::Kind::sleeping && sampler.reader().lock_soon()) {
    std::shared_ptr<const StackReader::Prediction> predicted;
    {
      const std::lock_guard lock(watch->prediction_lock);
      predicted = watch->prediction;
    }
    found->loss = sampler.read_asleep(*watch->thread, state, *predicted, found->look);
    sampler.reader().unlock();
    if (found->loss == Loss::none) found->kind = Found::Kind::look;
  }
  if (found->loss != Loss::none) watch->slept = false;   // to be read at the next tick
  put();
}

// Of the threads of this CPU that could run, at most one did: until this one woke.
void Stoppers::Stopper::settle_candidates(std::int64_t number, bool in_time) {
  const Candidate* executing = nullptr;
  for (const Candidate& candidate : candidates_) {
    if (executing == nullptr && (candidate.remote || executes(*candidate.watch, candidate.now, candidates_.size() == 1))) executing = &candidate;
    else waits(candidate.watch, number, candidate.now);
  }
  if (executing != nullptr) {
    if (in_time) {
      ask(executing->watch, executing->now, number, executing->remote);
    } else {
      ++executing->watch->late;
      account(*executing->watch, number, executing->now, false);
    }
  }
  for (const Candidate& candidate : candidates_) candidate.watch->claim.give_back();
}

void Stoppers::Stopper::waits(const std::shared_ptr<Watch>& watch, std::int64_t number, const Thread::Schedule& now) {
  account(*watch, number, now, false);
  if (!all_.idle_) {
    ++watch->waited;
    return;
  }
  if (Found* const found = open_found(watch, number)) found->kind = Found::Kind::waiting, put();
  else ++watch->late;
}

// Who has had the CPU all the time since the last tick has it now. Else the time that its time on the CPU was counted tells: when it was taken off.
bool Stoppers::Stopper::executes(const Watch& watch, const Thread::Schedule& now, bool alone) {
  const std::int64_t on_cpu = now.on_cpu - watch.schedule.on_cpu;
  if (now.runs != 0 && on_cpu == 0) return false;
  constexpr std::int64_t off_at_most = 300'000;   // ns: by luaspy's own doing
  if (alone && on_cpu >= to_ns(woke_ - watch.at) - off_at_most) return true;
  constexpr Clock::duration ask_again = 200ms;   // the clocks run apart by some 100 ns a ms at most
  if (!clock_offset_ || woke_ - offset_asked_ > ask_again) {
    const std::optional<std::int64_t> own = own_thread_->counted_at();
    if (!own) return true;   // the kernel does not tell: what the stop finds out has to do
    clock_offset_ = to_ns(woke_.time_since_epoch()) - *own;
    offset_asked_ = woke_;
  }
  const std::optional<std::int64_t> counted = watch.thread->counted_at();
  constexpr std::int64_t just_now = 60'000;   // ns: waking takes some µs, the offset is some µs old
  return !counted || *counted + *clock_offset_ > to_ns(woke_.time_since_epoch()) - just_now;
}

void Stoppers::Stopper::ask(const std::shared_ptr<Watch>& watch, const Thread::Schedule& before, std::int64_t number, bool remote) {
  account(*watch, number, before, false);
  auto stop = std::make_unique<Stop>(tracer_, watch->session.target(), watch->thread->tid(), Stop::Later{});
  Asked asked{watch, std::move(stop), before, number, weight_ns_, woke_, remote};
  if (asked.stop->outcome() != Stop::Outcome::pending) return arrived(std::move(asked));
  watch->asked_by = cpu_;
  asked_.push_back(std::move(asked));
}

// It stands still, or cannot be stopped.
void Stoppers::Stopper::arrived(Asked asked) {
  Watch& watch = *asked.watch;
  if (watch.gone) {
    asked.stop->resume();
    watch.asked_by = -1;
    return;
  }
  Sampler& sampler = watch.session.sampler();
  Found* const found = open_found(asked.watch, asked.number);
  const bool locked = found != nullptr && sampler.reader().lock_soon();
  if (!locked) {
    asked.stop->resume();
    ++watch.late;   // the main thread does not keep up
    watch.asked_by = -1;
    return;
  }
  static const auto none = std::make_shared<const StackReader::Prediction>();
  std::shared_ptr<const StackReader::Prediction> predicted = none;
  if (watch.prediction_lock.try_lock()) {
    predicted = watch.prediction;
    watch.prediction_lock.unlock();
  }
  found->at = asked.woke;
  found->weight_ns = asked.weight_ns;
  found->remote = asked.remote;
  found->loss = sampler.read_stopped(*asked.stop, *watch.thread, *predicted, found->look);
  sampler.reader().unlock();
  found->kind = found->loss == Loss::none ? Found::Kind::look : Found::Kind::loss;
  if (found->look.stopped_ns != 0) count_stop(asked, *found);
  watch.asked_by = -1;
  put();
}

// How long the thread stood still, and whether it is where it executed when the tick came.
void Stoppers::Stopper::count_stop(const Asked& asked, Found& found) {
  Watch& watch = *asked.watch;
  const Sampler::Look& look = found.look;
  const std::int64_t runs = static_cast<std::int64_t>(look.schedule.runs - asked.before.runs), waited = look.schedule.waited_for_cpu - asked.before.waited_for_cpu;
  constexpr std::int64_t tolerated = 20'000;   // ns
  // The CPU that the stopper has left may go to somebody else first: that wait is not of luaspy's making.
  const std::int64_t taken = std::max<std::int64_t>(waited - to_ns(asked.stop->requested() - asked.woke) - tolerated, 0);
  found.stopped_ns = std::max(look.stopped_ns - taken, look.held_ns);
  watch.schedule = look.schedule;
  if (asked.before.runs != 0 && runs == 0 && !asked.remote) {
    // It went on where it was: nobody has taken its CPU. The interrupt came from another one.
    found.kind = Found::Kind::loss;
    found.loss = Loss::elsewhere;
  } else if (waited > to_ns(look.seen - asked.woke) + tolerated) {
    found.stopped_ns = look.held_ns;   // it waited already when the tick came
    found.kind = all_.idle_ ? Found::Kind::waiting : Found::Kind::loss;
    found.loss = Loss::none;           // only the time that it stood still counts
    if (!all_.idle_) ++watch.waited;
  }
  all_.add_stop(watch.thread->tid(), found.stopped_ns);
}

// The ticks since its last one that nobody made of this thread, and this one.
void Stoppers::Stopper::account(Watch& watch, std::int64_t number, const Thread::Schedule& now, bool slept) {
  const std::int64_t skipped = all_.skipped_;
  if (watch.tick == -1) {
    watch.tick = number - 1;
    watch.skipped_seen = skipped;
    watch.at = std::max(watch.at, woke_ - all_.grid_.interval());
    watch.schedule = now;
  }
  const std::int64_t missed = std::max<std::int64_t>(number - watch.tick - 1 - (skipped - watch.skipped_seen), 0);
  weight_ns_ = to_ns(woke_ - watch.at);
  // It executed at as many of them as it had of the time.
  const std::int64_t ran = std::clamp<std::int64_t>(now.on_cpu - watch.schedule.on_cpu, 0, weight_ns_);
  const std::int64_t executed = now.runs == 0 || weight_ns_ == 0 ? missed : (missed * ran + weight_ns_ / 2) / weight_ns_;
  (watch.moved ? watch.elsewhere : watch.late) += executed;
  (watch.slept ? watch.idle : watch.waited) += missed - executed;
  watch.moved = false;
  watch.skipped_seen = skipped;
  watch.tick = number;
  watch.at = woke_;
  watch.schedule = now;
  watch.slept = slept;
}

Found* Stoppers::Stopper::open_found(const std::shared_ptr<Watch>& watch, std::int64_t number) {
  if (put_ - taken_.load(std::memory_order_acquire) == ring_size) return nullptr;
  std::unique_ptr<Found>& place = ring_[put_ % ring_size];
  const Memory& memory = watch->session.target().memory();
  if (place == nullptr || place->watch == nullptr || &place->watch->session != &watch->session) place = std::make_unique<Found>(memory);
  place->watch = watch;
  place->number = number;
  place->at = woke_;
  place->weight_ns = weight_ns_;
  place->kind = Found::Kind::loss;
  place->loss = Loss::none;
  place->stopped_ns = 0;
  place->remote = false;
  return place.get();
}

Stoppers::Stoppers(const TickGrid& grid, double max_stopped, bool idle)
    : grid_(grid), idle_(idle), usable_(usable_cpus()), stoppers_(usable_.size()), budget_(max_stopped / 100), start_(grid.time_of(0)) {}

Stoppers::~Stoppers() { stop(); }

void Stoppers::stop() {
  {
    const std::lock_guard lock(stoppers_lock_);
    if (std::exchange(stopped_, true)) return;
  }
  if (!kept_off_.empty()) (void)stay_on(usable_);
  const std::vector<Stopper*> stoppers = all();
  for (Stopper* const stopper : stoppers) stopper->end();
  for (Stopper* const stopper : stoppers) {
    while (!stopper->has_ended()) {
      stopper->interrupt();
      (void)system::sleep_until(Clock::now() + 1ms);
    }
  }
}

bool Stoppers::is_usable(int cpu) const { return std::ranges::binary_search(usable_, cpu); }

bool Stoppers::need(int cpu) {
  const auto place = std::ranges::lower_bound(usable_, cpu);
  if (place == usable_.end() || *place != cpu) return false;
  const auto index = static_cast<std::size_t>(place - usable_.begin());
  const std::lock_guard lock(stoppers_lock_);
  if (stopped_) return false;
  std::unique_ptr<Stopper>& stopper = stoppers_[index];
  if (stopper == nullptr) stopper = std::make_unique<Stopper>(*this, cpu, static_cast<int>(index));
  stopper->activate();
  return stopper->active();
}

bool Stoppers::retire(Stopper& stopper) {
  const std::lock_guard lock(stoppers_lock_);
  const auto other = std::ranges::find_if(stoppers_, [&](const auto& each) { return each != nullptr && each->active() && each.get() != &stopper; });
  if (other == stoppers_.end()) return false;
  stopper.deactivate();
  for (const auto& watch : *roster()) {
    if (watch->cpu == stopper.cpu()) watch->cpu = (*other)->cpu();
  }
  return true;
}

bool Stoppers::on_time() const {
  return std::ranges::all_of(all(), [](const Stopper* stopper) { return stopper->real_time(); });
}

bool Stoppers::begin_tick(std::int64_t number, Clock::time_point now) {
  const std::lock_guard lock(budget_lock_);
  if (number <= last_tick_) return !skips_;   // another one has begun it
  if (!skips_) budget_.end_tick(last_tick_at_);
  last_tick_ = number;
  const std::int64_t at = to_ns(now - start_);
  skips_ = at < budget_.paid_at();
  if (!skips_) last_tick_at_ = at;
  ++(skips_ ? skipped_ : ticks_);
  return !skips_;
}

void Stoppers::add_stop(int tid, std::int64_t ns) {
  const std::lock_guard lock(budget_lock_);
  budget_.add(tid, ns);
}

std::vector<std::shared_ptr<Watch>> Stoppers::watch(const std::vector<std::unique_ptr<Session>>& sessions, const Session* but) {
  auto next = std::make_shared<Roster>();
  const Clock::time_point now = Clock::now();
  bool same = true;
  std::size_t kept = 0;
  for (const auto& session : sessions) {
    if (session == nullptr || session.get() == but) continue;   // some may be being dropped
    for (const std::shared_ptr<Thread>& thread : session->target().process().threads()) {
      const auto known = watches_.find(thread.get());
      if (known != watches_.end()) {
        next->push_back(known->second);
        ++kept;
        continue;
      }
      same = false;
      auto watch = std::make_shared<Watch>(*session, thread, now);
      // One that executes where luaspy may not go is looked after from elsewhere.
      if (!need(watch->cpu) && !usable_.empty()) watch->cpu = usable_.front(), (void)need(usable_.front());
      next->push_back(std::move(watch));
    }
  }
  if (same && kept == main_roster_->size()) return {};
  const std::shared_ptr<const Roster> old = std::exchange(main_roster_, next);
  watches_.clear();
  for (const auto& watch : *next) watches_[watch->thread.get()] = watch;
  std::atomic_store(&roster_, main_roster_);
  // Who is being looked at is waited for: its session may be gone when this returns.
  std::vector<std::shared_ptr<Watch>> left;
  for (const auto& watch : *old) {
    if (watches_.contains(watch->thread.get())) continue;
    left.push_back(watch);
    while (!watch->claim.try_take()) {
      watch_over();
      (void)system::sleep_until(Clock::now() + 100us);
    }
    watch->gone = true;
    constexpr Clock::duration stops_within = 2s;   // one that has not by then is let go when it does, without a look at its session
    for (const Clock::time_point end = Clock::now() + stops_within; watch->asked_by != -1 && Clock::now() < end;) (void)system::sleep_until(Clock::now() + 100us);
  }
  return left;
}

std::vector<Stoppers::Stopper*> Stoppers::all() const {
  const std::lock_guard lock(stoppers_lock_);
  std::vector<Stopper*> all;
  for (const auto& stopper : stoppers_) {
    if (stopper != nullptr) all.push_back(stopper.get());
  }
  return all;
}

void Stoppers::drain(Clock::time_point until, const std::function<void(Found&)>& take) {
  const std::vector<Stopper*> stoppers = all();
  for (;;) {
    Stopper* first = nullptr;
    for (Stopper* const stopper : stoppers) {
      if (stopper->front() == nullptr || stopper->front()->at > until) continue;
      if (first == nullptr || stopper->front()->number < first->front()->number) first = stopper;
    }
    if (first == nullptr) return;
    take(*first->front());
    first->pop();
  }
}

void Stoppers::watch_over() {
  constexpr std::int64_t wait_at_most = 50'000'000;   // ns
  const std::int64_t now = to_ns(Clock::now().time_since_epoch());
  for (Stopper* const stopper : all()) {
    const std::int64_t since = stopper->waits_since();
    if (since != 0 && now - since > wait_at_most) stopper->interrupt();
  }
}

void Stoppers::keep_off() {
  std::vector<int> busy;
  for (const auto& watch : *main_roster_) {
    if (!watch->slept && is_usable(watch->cpu)) busy.push_back(watch->cpu);
  }
  std::ranges::sort(busy);
  busy.erase(std::unique(busy.begin(), busy.end()), busy.end());
  if (busy == kept_off_) return;
  std::vector<int> others;
  std::ranges::set_difference(usable_, busy, std::back_inserter(others));
  (void)stay_on(others.empty() ? usable_ : others);
  kept_off_ = std::move(busy);
}

}  // namespace luaspy
