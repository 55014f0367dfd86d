#include "recording/coroutine_looks.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <random>

#include "attach/proc_files.h"
#include "system/calls.h"
#include "system/signals.h"

namespace luaspy {
namespace {

using Clock = system::Clock;

constexpr std::chrono::milliseconds first_pause(50), between_searches(50);
// A thread that runs is taken to be on the stack on which it was so long ago.
constexpr std::chrono::milliseconds recent(50);
// Places of one Lua in one look that are told apart, besides those of coroutines with a number; and places of requests.
constexpr std::size_t most_groups = 500, most_groups_of_requests = 5000;

std::int64_t own_cpu_ns() {
  constexpr std::int64_t second = 1'000'000'000;
  struct timespec time {};
  return ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 ? time.tv_sec * second + time.tv_nsec : 0;
}

// A thread that sleeps says where its stack is. Of one that runs, the sampler saw it a moment ago.
StacksInUse stacks_in_use(pid_t pid, const std::vector<std::pair<pid_t, Sampler::LastStop>>& stops) {
  constexpr std::size_t most_threads = 256;
  const std::vector<pid_t> threads = system::numeric_entries(proc_path(pid, "task"));
  if (threads.size() > most_threads) return {};
  StacksInUse stacks{true, {}};
  for (const pid_t tid : threads) {
    const ThreadState state = Thread(pid, tid).state();
    if (state.kind == ThreadState::Kind::ended) continue;
    Address sp = state.sp;
    const auto stop = std::ranges::find(stops, tid, &std::pair<pid_t, Sampler::LastStop>::first);
    if (state.kind == ThreadState::Kind::running && stop != stops.end() && Clock::now() - stop->second.seen < recent)
      sp = stop->second.sp;
    if (sp == 0) return {};
    stacks.sps.push_back(sp);
  }
  return stacks;
}

AddressSpace space_of(pid_t pid) {
  return AddressSpace::parse(system::read_file(proc_path(living_thread(pid), "maps")).value_or(""));
}

}  // namespace

CoroutineLooks::Watched::Watched(Session& session, Address its_G, const Lua& its_lua, bool by_request)
    : pid(session.pid()),
      program(session.program()),
      process(session.command()),
      G(its_G),
      lua(its_lua),
      memory(pid),
      watch(memory, G, lua, [this, by_request](const Memory& read, Address L) {
        const HostRequest request = requests ? requests->of_suspended(read, lua, G, L) : HostRequest{};
        if (request.identity.id == 0) return std::uint64_t{0};  // none, or not known yet
        return by_request ? request.identity.id : std::hash<std::string>()(request.text);
      }) {}

void CoroutineLooks::start(Clock::time_point start) {
  start_ = start;
  next_ = start + first_pause;
  numbers_ = {1, most_numbered + 1};
  thread_ = system::thread_without_signals([this] { run(); });
}

void CoroutineLooks::look(SampleSink& sink) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  find();
  if (has_round_) add_round(sink);
  if (Clock::now() < next_ - recent) return;  // no look will need it
  for (const auto& watched : watched_) {
    Session* const session = session_of(*watched);
    if (session == nullptr) continue;
    const auto& stops = session->sampler().last_stops();
    watched->stops.assign(stops.begin(), stops.end());
  }
}

void CoroutineLooks::finish(SampleSink& sink) {
  stop();
  if (has_round_) add_round(sink);
}

void CoroutineLooks::stop() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CoroutineLooks::find() {
  const Clock::time_point now = Clock::now();
  if (now < find_at_) return;
  find_at_ = now + between_searches;
  for (const auto& session : tree_.sessions()) {
    StackReader& reader = session->sampler().reader();
    if (!reader.lock_soon()) continue;
    if (searched_.insert(session->program()).second) reader.find_states();  // of those that sleep, too
    for (const auto& [G, lua] : reader.lua().global_states()) {
      const auto is_same = [&, G = G](const auto& each) { return each->program == session->program() && each->G == G; };
      if (std::ranges::any_of(watched_, is_same)) continue;
      if (watched_.size() == most_watched) {
        left_some_out_ = true;
        break;
      }
      watched_.push_back(std::make_unique<Watched>(*session, G, *lua, by_request_));
      // What is found at the beginning was there before.
      watched_.back()->looked_ns = looks_ == 0 ? 0 : system::to_ns(now - start_);
    }
    reader.unlock();
  }
}

// A look at anywhere between half the pace and one and a half after the one before: so it is not in step with a program
// that does something every second.
void CoroutineLooks::run() {
  std::minstd_rand random(std::random_device{}());
  std::uniform_real_distribution<double> part(0.5, 1.5);
  constexpr int most_tries = 20;  // for a sample of a thread that runs
  int tries = 0;
  std::int64_t took_ns = 0;
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (has_round_ || watched_.empty() || Clock::now() < next_) {
      wake_.wait_for(lock, std::chrono::milliseconds(10));
      continue;
    }
    const std::int64_t before = own_cpu_ns();
    const bool is_known = find_stacks();
    if (!is_known && tries++ < most_tries) {
      took_ns += own_cpu_ns() - before;
      wake_.wait_for(lock, std::chrono::milliseconds(10));
      continue;
    }
    tries = 0;
    look_at_all();
    took_ns += own_cpu_ns() - before;
    spent_ns_ += took_ns;
    const auto affordable = std::chrono::nanoseconds(
        static_cast<std::int64_t>(static_cast<double>(took_ns) / most_cpu));
    const double pause_ns = part(random) *
                            static_cast<double>(std::max<std::chrono::nanoseconds>(pace_, affordable).count());
    next_ = Clock::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(pause_ns));
    took_ns = 0;
  }
}

bool CoroutineLooks::find_stacks() {
  stacks_.clear();
  bool all_known = true;
  for (const auto& watched : watched_) {
    const auto [stacks, is_new] = stacks_.try_emplace(watched->pid);
    if (is_new) stacks->second = stacks_in_use(watched->pid, watched->stops);
    const bool matters = looks_ == 0 || watched->has_fibers || watched->watch.misses_elsewhere();
    all_known = all_known && (stacks->second.known || !matters);
  }
  return all_known;
}

void CoroutineLooks::look_at_all() {
  round_at_ns_ = system::to_ns(Clock::now() - start_);
  std::map<pid_t, AddressSpace> spaces;
  for (const auto& watched : watched_) {
    const auto [space, is_new] = spaces.try_emplace(watched->pid);
    if (is_new) space->second = space_of(watched->pid);
    watched->was_found = watched->watch.look(space->second, stacks_[watched->pid], system::to_ns(Clock::now() - start_),
                                             numbers_);
    if (watched->was_found && !watched->watch.is_complete()) ++incomplete_;
    watched->has_fibers |= watched->watch.sees_elsewhere();
    watched->left_out = watched->has_fibers && watched->watch.misses_elsewhere();
    left_out_ += watched->left_out ? 1 : 0;
  }
  ++looks_;
  has_round_ = true;
}

void CoroutineLooks::add_round(SampleSink& sink) {
  has_round_ = false;
  for (const auto& watched : watched_) {
    Session* const session = session_of(*watched);
    // The next look stands for this one's time, too.
    if (session != nullptr && watched->was_found && !watched->left_out) add(sink, *watched, *session);
  }
  std::erase_if(watched_, [](const auto& watched) { return !watched->was_found; });
}

Session* CoroutineLooks::session_of(const Watched& watched) const {
  const auto& sessions = tree_.sessions();
  const auto found = std::ranges::find_if(sessions,
                                          [&](const auto& session) { return session->program() == watched.program; });
  return found == sessions.end() ? nullptr : found->get();
}

// Names are asked for now, while the memory that was read is kept.
void CoroutineLooks::add(SampleSink& sink, Watched& watched, Session& session) {
  if (!watched.lua.is_thread_of(watched.memory, watched.lua.main_thread(watched.memory, watched.G), watched.G)) return;
  StackReader& reader = session.sampler().reader();
  EventTables& tables = tree_.tables();
  SuspendedLook found;
  found.at_ns = round_at_ns_;
  found.weight_ns = std::max<std::int64_t>(round_at_ns_ - std::exchange(watched.looked_ns, round_at_ns_), 0);
  found.pid = watched.pid;
  found.program = watched.program;
  found.process = watched.process;
  found.state = watched.G;
  found.unread = watched.watch.unread();
  SuspendedGroup others;
  others.count = 0;
  CoroutineLook look;
  std::size_t named = 0, named_of_requests = 0;
  for (const WaitingGroup& group : watched.watch.groups()) {
    const Memory* memory = nullptr;
    const bool is_shown = group.number != 0 ||
                          (group.has_purpose ? named_of_requests++ < most_groups_of_requests : named++ < most_groups);
    if (!is_shown || !watched.watch.look_at(group.example, look, memory)) {
      others.count += group.count;
      others.longest_ns = std::max(others.longest_ns, group.longest_ns);
      continue;
    }
    CoroutineFrames frames = frames_of(look, reader.lua().names(), reader.native_code(),
                                       {watched.lua, watched.G, *memory});
    if (frames.stack.empty()) frames.stack = {frames.began, marker("[not started]")};
    Labels labels = {
        {std::string(suspended_label), frames.began.name.empty() ? "(unknown)" : describe(frames.began, false)}};
    HostRequest request;
    if (group.has_purpose && watched.requests)
      request = watched.requests->of_suspended(*memory, watched.lua, watched.G, group.example);
    if (!request.text.empty()) labels.push_back({std::string(request_label), request.text});
    if (group.number != 0 && look.status == CoroutineStatus::elsewhere) {
      std::string fiber = reader.fiber_of(watched.memory, watched.lua.anchor(*memory, group.example));
      if (!fiber.empty()) labels.push_back({std::string(fiber_label), std::move(fiber)});
    }
    found.groups.push_back({group.number, tables.stacks.intern(frames.stack), tables.labels.intern(labels), group.count,
                            group.longest_ns, request.identity});
  }
  if (others.count != 0) {
    others.stack = tables.stacks.intern(Stack{marker("[other places]")});
    found.groups.push_back(others);
  }
  sink.add_suspended(found);
  watched.requests.reset();
  if (const HostRequests* const known = reader.requests()) watched.requests.emplace(*known);
}

std::string CoroutineLooks::text() const {
  std::string text;
  const double each_ns = static_cast<double>(spent_ns_) / static_cast<double>(std::max<std::int64_t>(looks_, 1));
  if (each_ns > most_cpu * static_cast<double>(pace_.count()))
    text += fmt::format(
        "luaspy: coroutines were looked at {} times, which is less often than asked for: a look took {:.0f} ms of "
        "CPU time (--coroutines)\n",
        looks_, each_ns / 1e6);
  if (incomplete_ != 0)
    text += fmt::format("luaspy: in {} of {} looks the collector was too fast to find all coroutines (--coroutines)\n",
                        incomplete_, looks_);
  if (left_out_ != 0)
    text += fmt::format(
        "luaspy: {} of {} looks at coroutines were left out: a thread ran, and it was not known which fibers wait "
        "(--coroutines)\n",
        left_out_, looks_);
  if (left_some_out_) text += "luaspy: there are more Luas than are looked at; these are the first (--coroutines)\n";
  return text;
}

}  // namespace luaspy
