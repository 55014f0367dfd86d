#include "sampling/process_tree.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "attach/refusal.h"

namespace luaspy {
namespace {

using Clock = system::Clock;
using namespace std::chrono_literals;

// A program maps its libraries within some 100 µs of its exec, and a forked one may exec at once.
constexpr Clock::duration after_birth = 250us;
constexpr Clock::duration to_load_lua = 300ms;  // a program that has none by then is not waited for
constexpr Clock::duration longest_exec = 1s;    // from a birth that tells it to the program's mark
constexpr std::size_t most_processes = 4096;

bool has_readable(Session& session) { return session.has_readable_lua(); }

// That the calling thread has used: what it waited for a CPU is no cost.
Clock::duration cpu_time_of_thread() {
  timespec used{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

std::vector<pid_t> threads_of(pid_t pid) {
  Result<Process> process = Process::open(pid);
  std::vector<pid_t> tids;
  if (!process) return tids;
  for (const auto& thread : process->threads()) tids.push_back(thread->tid());
  return tids;
}

}  // namespace

ProcessTree::ProcessTree(std::unique_ptr<Session> target, const SamplerOptions& sampler, bool subprocesses,
                         std::unique_ptr<Births> births)
    : sampler_(sampler),
      subprocesses_(subprocesses),
      pace_{after_birth, 5s, 100ms, 100},
      target_(target.get()),
      births_(std::move(births)) {
  hears_all_ = births_ != nullptr;
  sessions_.push_back(std::move(target));
  update();
}

// Most processes of a host have no Lua and never will have: they are asked less and less often.
ProcessTree::ProcessTree(const SamplerOptions& sampler, std::function<bool(pid_t)> wanted)
    : sampler_(sampler), subprocesses_(true), pace_{100ms, 1min, 1s, 1000}, wanted_(std::move(wanted)) {
  sampler_.known_files = std::make_shared<KnownFiles>();
  sampler_.tables = std::make_shared<EventTables>();
  update();
}

ProcessTree ProcessTree::of_host(const SamplerOptions& sampler, std::function<bool(pid_t)> wanted) {
  return {sampler, std::move(wanted)};
}

// What is started may be a shell, make or a test runner, whose children do the work.
Result<ProcessTree> ProcessTree::open(const TargetOptions& options, const SamplerOptions& sampler, bool subprocesses,
                                      const Session::BeforeStart& before_start) {
  SamplerOptions shared = sampler;
  shared.known_files = std::make_shared<KnownFiles>();
  shared.tables = std::make_shared<EventTables>();
  std::unique_ptr<Births> births;
  const auto before = [&](pid_t pid) -> Result<void> {
    births = Births::open();
    if (births != nullptr && !births->watch(std::array{pid})) births = nullptr;
    return before_start ? before_start(pid) : Result<void>();
  };
  Result<std::unique_ptr<Session>> target = Session::open(options, shared, before);
  if (!target) return target.error();
  const bool launched = (*target)->launched();
  return ProcessTree(std::move(*target), shared, subprocesses || launched, std::move(births));
}

// A thread that begins between its process's listing and its parent's being watched is in the second listing.
void ProcessTree::watch_births() {
  if (!has_target()) return;
  for (const auto& session : sessions_) cpu_.begin(session->target().process().pid(), has_readable(*session));
  for (const auto& [pid, candidate] : candidates_) cpu_.begin(pid, false);
  if (births_ != nullptr) return;
  births_ = Births::open();
  if (births_ == nullptr) return;
  hears_all_ = true;
  std::set<pid_t> processes = {target_->target().process().pid()};
  if (subprocesses_) processes.merge(find_descendants());
  std::set<pid_t> watched;
  constexpr int rounds = 2;
  for (int round = 0; round < rounds; ++round) {
    for (const pid_t pid : processes) {
      for (const pid_t tid : threads_of(pid)) {
        if (watched.insert(tid).second) hears_all_ = births_->watch(std::array{tid}) && hears_all_;
      }
    }
  }
}

bool ProcessTree::wait(Clock::time_point until) {
  Clock::time_point first = until;
  for (const auto& [pid, candidate] : candidates_) first = std::min(first, candidate.ask_at);
  if (births_ != nullptr) births_->wait(first);
  else (void)system::sleep_until(first);
  return Clock::now() < until;
}

ProcessTree::Sessions::iterator ProcessTree::find(pid_t pid) {
  return std::ranges::find_if(sessions_, [&](const auto& session) { return session->target().process().pid() == pid; });
}

Session* ProcessTree::session_of(pid_t pid) {
  const auto found = find(pid);
  return found != sessions_.end() ? found->get() : nullptr;
}

void ProcessTree::add_candidate(pid_t pid, Clock::duration pause) {
  if (!subprocesses_ || session_of(pid) != nullptr) return;
  if (candidates_.size() >= most_processes && !candidates_.contains(pid)) return;
  const Clock::time_point now = Clock::now();
  candidates_[pid] = {{}, false, now + pause, now, std::max(pause, pace_.first)};
}

void ProcessTree::handle(const Birth& birth) {
  Session* const session = session_of(birth.pid);
  switch (birth.kind) {
    case Birth::Kind::thread:
      if (session != nullptr) session->target().process().add_thread(birth.tid);
      break;
    case Birth::Kind::thread_end:
      if (session != nullptr) session->target().process().remove_thread(birth.tid);
      if (subprocesses_) may_be_gone_.insert(birth.pid);  // update() asks
      if (birth.tid == birth.pid) candidates_.erase(birth.pid), unfollowed_.erase(birth.pid);
      break;
    case Birth::Kind::cpu_time:
      if (subprocesses_ || session != nullptr) cpu_.add_ended(birth.pid, birth.ns);
      break;
    case Birth::Kind::process:
      if (subprocesses_) cpu_.born(birth.pid);
      else if (unfollowed_.size() < most_processes) unfollowed_.insert(birth.pid);
      // It has its parent's program until it execs another one.
      add_candidate(birth.pid, session_of(birth.parent) != nullptr ? Clock::duration() : after_birth);
      break;
    case Birth::Kind::exec:
      if (session != nullptr && session != target_) drop(find(birth.pid));
      else if (session != nullptr) ask_program_until_ = Clock::now() + longest_exec;
      add_candidate(birth.pid, after_birth);
      break;
  }
}

// When before_drop_ is called for a session, those dropped earlier are already gone from sessions().
ProcessTree::Sessions::iterator ProcessTree::drop(Sessions::iterator session) {
  if (has_target()) cpu_.read((*session)->target().process().pid());
  if (before_drop_) before_drop_(**session);
  had_lua_ |= has_readable(**session);
  std::ranges::copy((*session)->sampler().reader().lua().layout_names(),
                    std::inserter(layout_names_, layout_names_.end()));
  if (session->get() == target_) ended_target_ = std::move(*session);
  return sessions_.erase(session);
}

bool ProcessTree::is_gone(Session& session) {
  if (has_target()) cpu_.read(session.target().process().pid());  // while it is a zombie it still says it
  // A zombie has ended, though nobody may wait for it for a long time.
  return session.ended() ||
         (&session != target_ && (session.has_new_program() || is_ending(session.target().process().pid())));
}

void ProcessTree::drop_ended() {
  for (auto session = sessions_.begin(); session != sessions_.end();)
    session = is_gone(**session) ? drop(session) : std::next(session);
}

// The target stays what it is if it executes another program; its threads do not. If a birth has told of an exec, it is
// asked for until that is over; else now and then.
void ProcessTree::ask_program() {
  constexpr Clock::duration ask_again = 1s;
  const Clock::time_point now = Clock::now();
  if ((now < ask_program_at_ && now >= ask_program_until_) || ended_target_ != nullptr || !has_target()) return;
  ask_program_at_ = now + ask_again;
  if (!target_->has_new_program()) return;
  target_->begin_program();
  ask_program_until_ = {};
}

void ProcessTree::handle_births() {
  if (births_ != nullptr) hears_all_ = births_->drain([&](const Birth& birth) { handle(birth); }) && hears_all_;
}

void ProcessTree::update() {
  handle_births();
  ask_program();
  if (!subprocesses_) return;
  for (const pid_t pid : std::exchange(may_be_gone_, {})) {
    const auto session = find(pid);
    if (session != sessions_.end() && is_gone(**session)) drop(session);
  }
  if (Clock::now() >= find_at_) {
    const Clock::duration before = cpu_time_of_thread();
    drop_ended();
    const std::set<pid_t> alive = find_descendants();
    std::erase_if(candidates_, [&](const auto& candidate) { return !alive.contains(candidate.first); });
    for (const pid_t pid : alive) {
      if (!candidates_.contains(pid)) add_candidate(pid, {});
    }
    constexpr Clock::duration to_be_sure = 1s;
    const Clock::duration cost = pace_.search_cost * (cpu_time_of_thread() - before);
    find_at_ = Clock::now() + std::max<Clock::duration>(hears_all_ ? to_be_sure : pace_.search, cost);
  }
  ask_candidates();
}

// Children of processes without Lua count as well: a shell or a supervisor may be in between.
// Processes whose parents have ended are known already, or cannot be attributed.
std::set<pid_t> ProcessTree::find_descendants() {
  std::vector<pid_t> to_visit;
  if (!has_target()) to_visit.push_back(1);
  for (const auto& session : sessions_) to_visit.push_back(session->target().process().pid());
  for (const auto& [pid, candidate] : candidates_) to_visit.push_back(pid);
  std::set<pid_t> alive;
  while (!to_visit.empty() && alive.size() < most_processes) {
    const pid_t pid = to_visit.back();
    to_visit.pop_back();
    if (!alive.insert(pid).second) continue;
    std::ranges::copy(children_of(pid), std::back_inserter(to_visit));
  }
  return alive;
}

void ProcessTree::ask_candidates() {
  for (auto candidate = candidates_.begin(); candidate != candidates_.end();) {
    const bool due = Clock::now() >= candidate->second.ask_at;
    if (due && becomes_session(candidate->first, candidate->second)) candidate = candidates_.erase(candidate);
    else ++candidate;
  }
}

// True: it is a candidate no more, as it runs Lua now, or is gone. Most processes have none, and what their
// files have is known: to look costs some 100 µs.
bool ProcessTree::becomes_session(pid_t pid, Candidate& candidate) {
  if (std::string executable = executable_of(pid); executable != candidate.executable) {
    candidate.executable = std::move(executable);
    candidate.pause = pace_.first;
    candidate.unwanted = wanted_ && !wanted_(pid);
  } else {
    candidate.pause = std::min<Clock::duration>(2 * candidate.pause, pace_.longest);
  }
  candidate.ask_at = Clock::now() + candidate.pause;
  if (candidate.unwanted) return false;
  Result<Process> process = Process::open(pid);
  if (!process) return process.error().cause == Cause::no_such_process;
  Detector detector;
  const LiveMemory memory(pid);
  detector.update(process->address_space(), memory, &sampler_.known_files->images,
                  [&](const Mapping& mapping) { return process->file_version(mapping); });
  if (detector.layouts().empty()) {
    if (has_target()) cpu_.runs_other(pid);
    return false;
  }
  Result<std::unique_ptr<Session>> session = Session::open({.pid = pid}, sampler_);
  if (!session) return session.error().cause == Cause::no_such_process;
  if (!(*session)->check_lua()) return false;
  sessions_.push_back(std::move(*session));
  if (has_target()) cpu_.runs_lua(pid);
  return true;
}

CpuUse ProcessTree::cpu_use() {
  if (!has_target()) return {};  // to ask all processes of a host ten times a second would cost more than their samples
  for (const auto& session : sessions_) {
    const pid_t pid = session->target().process().pid();
    if (has_readable(*session)) cpu_.runs_lua(pid);  // a launched one has it some ms after its start
    cpu_.read(pid);
  }
  for (const auto& [pid, candidate] : candidates_) cpu_.read(pid);
  return cpu_.use(has_target() ? target_->target().process().pid() : 0, has_target() && subprocesses_);
}

bool ProcessTree::ended() {
  if (!has_target()) return false;
  if (!subprocesses_) return is_gone(*target_);
  find_at_ = {};
  update();
  if (!sessions_.empty()) return false;
  std::erase_if(candidates_, [](const auto& candidate) { return is_ending(candidate.first); });
  const Clock::time_point now = Clock::now();
  return std::ranges::none_of(candidates_,
                              [&](const auto& candidate) { return now - candidate.second.since < to_load_lua; });
}

std::vector<pid_t> ProcessTree::survivors() {
  handle_births();
  std::set<pid_t> all = unfollowed_;
  for (const auto& [pid, candidate] : candidates_) all.insert(pid);
  std::erase_if(all, is_ending);
  return {all.begin(), all.end()};
}

std::vector<std::string> ProcessTree::layout_names() const {
  std::set<std::string> layouts = layout_names_;
  for (const auto& session : sessions_)
    std::ranges::copy(session->sampler().reader().lua().layout_names(), std::inserter(layouts, layouts.end()));
  return {layouts.begin(), layouts.end()};
}

bool ProcessTree::has_lua() const {
  return had_lua_ || std::ranges::any_of(sessions_, [](const auto& session) { return has_readable(*session); });
}

Result<void> ProcessTree::check_lua() {
  return sessions_.size() == 1 && has_target() ? target_->await_lua() : Result<void>();
}

}  // namespace luaspy
