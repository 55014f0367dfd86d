#include "sampling/family.h"

#include <algorithm>
#include <iterator>

namespace luaspy {
namespace {

using Clock = system::Clock;

constexpr std::chrono::milliseconds shortest_pause(100), longest_pause(5000);
constexpr std::size_t most_processes = 4096;

bool has_readable(Session& session) {
  return std::ranges::any_of(session.sampler().reader().images(),
                             [](const LuaImage& image) { return !image.rows.empty(); });
}

}  // namespace

Family::Family(std::unique_ptr<Session> target, const SamplerOptions& sampler, bool subprocesses)
    : sampler_(sampler), subprocesses_(subprocesses), target_(target.get()) {
  sessions_.push_back(std::move(target));
  update();
}

// What is started may be a shell, make or a test runner, whose children do the work.
Result<Family> Family::open(const TargetOptions& options, const SamplerOptions& sampler, bool subprocesses,
                            const Session::BeforeStart& before_start) {
  Result<std::unique_ptr<Session>> target = Session::open(options, sampler, before_start);
  if (!target) return target.error();
  const bool launched = (*target)->launched();
  return Family(std::move(*target), sampler, subprocesses || launched);
}

void Family::update() {
  if (!subprocesses_) return;
  const Clock::time_point begin = Clock::now();
  if (begin < find_at_) return;
  // One at a time: when before_drop_ is called for a session, those dropped earlier are already
  // gone from sessions().
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    if (!is_gone(**session)) {
      ++session;
      continue;
    }
    if (before_drop_) before_drop_(**session);
    had_lua_ |= has_readable(**session);
    std::ranges::copy((*session)->sampler().reader().lua().rows(), std::inserter(rows_, rows_.end()));
    if (session->get() == target_) ended_target_ = std::move(*session);
    session = sessions_.erase(session);
  }
  find_descendants();
  const Clock::time_point end = Clock::now();
  find_at_ = end + std::max<Clock::duration>(shortest_pause, 100 * (end - begin));
}

bool Family::is_gone(Session& session) const {
  return session.ended() || (&session != target_ && session.has_new_program());
}

// Children of processes without Lua count as well: a shell or a supervisor may be in between.
// Processes whose parents have ended are known already, or cannot be attributed.
void Family::find_descendants() {
  std::vector<pid_t> to_visit;
  for (const auto& session : sessions_) to_visit.push_back(session->target().process().pid());
  const std::set<pid_t> looked_at(to_visit.begin(), to_visit.end());
  for (const auto& [pid, candidate] : candidates_) to_visit.push_back(pid);
  std::set<pid_t> alive;
  while (!to_visit.empty() && alive.size() < most_processes) {
    const pid_t pid = to_visit.back();
    to_visit.pop_back();
    if (!alive.insert(pid).second) continue;
    std::ranges::copy(children_of(pid), std::back_inserter(to_visit));
  }
  for (const pid_t pid : alive) {
    if (!looked_at.contains(pid)) consider(pid);
  }
}

void Family::consider(pid_t pid) {
  const Clock::time_point now = Clock::now();
  Candidate& candidate = candidates_[pid];
  if (std::string executable = executable_of(pid); executable != candidate.executable)
    candidate = {std::move(executable)};
  if (now < candidate.ask_at) return;
  candidate.pause = std::clamp(2 * candidate.pause, shortest_pause, longest_pause);
  candidate.ask_at = now + candidate.pause;
  Result<std::unique_ptr<Session>> session = Session::open({.pid = pid}, sampler_);
  if (!session) {
    if (session.error().cause == Cause::no_such_process) candidates_.erase(pid);
    return;
  }
  if (!(*session)->check_lua()) return;
  candidates_.erase(pid);
  sessions_.push_back(std::move(*session));
}

bool Family::ended() {
  if (!subprocesses_) return target_->ended();
  find_at_ = {};
  update();
  return sessions_.empty();
}

std::vector<std::string> Family::rows() const {
  std::set<std::string> rows = rows_;
  for (const auto& session : sessions_)
    std::ranges::copy(session->sampler().reader().lua().rows(), std::inserter(rows, rows.end()));
  return {rows.begin(), rows.end()};
}

bool Family::has_lua() const {
  return had_lua_ || std::ranges::any_of(sessions_, [](const auto& session) { return has_readable(*session); });
}

Result<void> Family::check_lua() {
  Result<void> own = target_->check_lua();
  if (own || sessions_.size() == 1) return own;
  return {};
}

}  // namespace luaspy
