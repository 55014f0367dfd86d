#include "sampling/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "sampling/debuginfod.h"
#include "sampling/lua_descendants.h"
#include "system/calls.h"
#include "system/launch.h"

namespace luaspy {
namespace {

// Which of the processes that `pid` has started have a Lua: users often name a wrapper.
std::string children_with_lua(pid_t pid) {
  std::string text;
  for (const pid_t child : children_of(pid)) {
    if (const std::optional<std::string> lua = lua_in(child))
      text += fmt::format("\nIts child {} runs {}: {}", child, *lua, command_of(child));
  }
  return text;
}

bool is_file(const std::string& path) {
  std::error_code unused;
  return std::filesystem::is_regular_file(path, unused);
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const TargetOptions& options, const SamplerOptions& sampler,
                                               const BeforeStart& before_start) {
  if (options.debuginfod) {
    if (const Result<void> used = use_debuginfod(); !used) return used.error();
  }
  if (options.pid != 0) {
    Result<Process> process = Process::open(options.pid);
    if (!process) return process.error();
    if (options.debuginfod) fetch_debug_files(*process);
    return std::unique_ptr<Session>(new Session(std::move(*process), sampler, false));
  }
  if (options.debuginfod) fetch_debug_files_later();  // the command will not wait for them
  system::Launch child(options.command, options.output_to_errors);
  Result<Process> process = child.pid() > 0 ? Process::open(child.pid())
                                            : Error{Cause::command_not_started, "Cannot start a process."};
  if (process && before_start) {
    if (const Result<void> ready = before_start(child.pid()); !ready) return ready.error();
  }
  if (const system::Failure failure = child.start()) {
    const Cause cause = failure.not_found() ? Cause::command_not_found : Cause::command_not_started;
    const std::string& command = options.command[0];
    const bool is_script = command.ends_with(".lua") && is_file(command);
    return Error{cause, fmt::format("Cannot start {}: {}.{}", command, failure.text(),
                                    is_script ? fmt::format(" It is a script. Name its interpreter before it: "
                                                            "-- lua5.4 {}",
                                                            command)
                                              : "")};
  }
  if (!process) return process.error();
  return std::unique_ptr<Session>(new Session(std::move(*process), sampler, true));
}

bool Session::ended() {
  if (!launched_) return !target_.process().alive();
  if (!exit_status_) exit_status_ = target_.exit_status();
  if (exit_status_) return true;
  const system::WaitStatus status = system::wait_for_end(target_.process().pid());
  if (status.kind != system::WaitStatus::Kind::ended) return false;
  // Without a status, another thread has just received it and is about to store it.
  constexpr int most_waits = 20;
  exit_status_ = status.exit_status;
  for (int waits = 0; !exit_status_ && waits < most_waits; ++waits) {
    exit_status_ = target_.exit_status();
    if (!exit_status_) (void)system::sleep_until(system::Clock::now() + std::chrono::milliseconds(1));
  }
  if (!exit_status_) exit_status_ = 0;
  return true;
}

int Session::wait_for_exit() {
  constexpr std::chrono::milliseconds look_again(100);
  while (launched_ && !ended()) {
    sampler_.do_deferred_work();  // a thread that did not stop in time may do so now
    system::await_end(target_.process().pid(), look_again);
  }
  return exit_status_.value_or(0);
}

void Session::begin_program() {
  static std::atomic<std::uint64_t> last = 0;
  program_ = ++last;
  executable_ = target_.process().executable();
  command_ = target_.process().command();
  mark_ = program_mark(target_.process().pid());
  target_.process().forget_program();
}

ThreadId Session::id_of(const Thread& thread) {
  ThreadTable& threads = sampler_.tables().threads;
  const ThreadKey key = key_of(thread);
  if (const std::optional<ThreadId> known = threads.find(key)) return *known;
  return threads.intern({key.tid, thread.name(), key.pid, command(), key.program, key.started});
}

std::string Session::command() const {
  const std::string now = target_.process().command();
  return now == "[]" ? command_ : now;  // neither words nor a name
}

// While an exec is under way there is no mark, and one that was not known may be that of the program that began then.
bool Session::has_new_program() {
  const std::string executable = target_.process().executable();
  if (executable == "?") return false;  // it has ended
  if (executable != executable_) return true;
  const std::optional<ProgramMark> now = program_mark(target_.process().pid());
  if (!mark_) mark_ = now;
  return now && mark_->differs(*now);
}

Result<void> Session::await_lua() {
  constexpr int most_looks = 20;
  constexpr std::chrono::milliseconds apart(10);
  for (int looks = 0; sampler_.reader().images().empty() && looks < most_looks && !ended(); ++looks) {
    (void)system::sleep_until(system::Clock::now() + apart);
    sampler_.reader().refresh();
  }
  return check_lua();
}

bool Session::has_readable_lua() {
  return std::ranges::any_of(sampler_.reader().images(), [](const LuaImage& image) { return !image.layouts.empty(); });
}

Result<void> Session::check_lua() {
  if (has_readable_lua()) return {};
  Process& process = target_.process();
  if (!sampler_.reader().images().empty()) {
    const LuaImage& image = sampler_.reader().images().front();
    return Error{Cause::unsupported, fmt::format("Process {} runs {} ({}), which luaspy does not support.",
                                                 process.pid(), image.name(), image.path)};
  }
  std::string text = fmt::format("No Lua in process {} ({}). Looked for a Lua core in:", process.pid(),
                                 process.command());
  for (const std::string& path : sampler_.reader().searched()) text += "\n  " + path;
  return Error{Cause::no_lua, text + children_with_lua(process.pid())};
}

}  // namespace luaspy
