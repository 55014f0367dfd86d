#include "ps/choose_target.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "attach/process.h"
#include "attach/refusal.h"
#include "base/text.h"
#include "base/words.h"
#include "ps/lua_processes.h"
#include "system/calls.h"
#include "system/terminal.h"

namespace luaspy {
namespace {

// Error texts end without a line break.
std::string listed(std::string text, const LuaProcesses& found, const std::vector<LuaProcess>& processes) {
  if (!processes.empty()) text += "\n" + table_of(processes, system::terminal_of(2).width);
  else text += "\n";
  text += unseen_text(found.unseen);
  text.pop_back();
  return text;
}

bool is_ours(const LuaProcess& process) { return process.refusal.empty(); }

// Among the processes that luaspy may look at, those whose Lua is certain if there are any, else
// all.
std::vector<LuaProcess> best_of(const std::vector<LuaProcess>& processes) {
  std::vector<LuaProcess> best;
  for (const bool certain : {true, false}) {
    for (const LuaProcess& process : processes) {
      const bool is_certain = std::ranges::any_of(process.images, &LuaImage::certain);
      if (is_ours(process) && (is_certain || !certain)) best.push_back(process);
    }
    if (!best.empty()) break;
  }
  return best;
}

// The process itself, the one that has started it, and so on.
std::vector<pid_t> ancestors_of(pid_t pid) {
  std::vector<pid_t> pids;
  constexpr int most = 100;
  while (pid > 0 && static_cast<int>(pids.size()) < most) {
    pids.push_back(pid);
    const std::string stat = system::read_file(fmt::format("/proc/{}/stat", pid)).value_or("");
    const std::size_t end = stat.rfind(')');
    if (end == stat.npos) break;
    std::string_view fields = std::string_view(stat).substr(end + 1);
    skip_words(fields, 1);
    pid = number<pid_t>(next_word(fields));
  }
  return pids;
}

// Those that none of the others has started, directly or by way of others.
std::vector<pid_t> not_started_by_others(const std::vector<LuaProcess>& processes) {
  std::vector<pid_t> first;
  for (const LuaProcess& process : processes) {
    const std::vector<pid_t> before = ancestors_of(process.pid);
    if (std::ranges::none_of(processes, [&](const LuaProcess& other) {
          return other.pid != process.pid && std::ranges::find(before, other.pid) != before.end();
        }))
      first.push_back(process.pid);
  }
  return first;
}

// One of several processes, or an Error that lists them and says what to type. `said`: what they are, as "--pid auto: 2
// processes run Lua".
Result<int> choose_of(std::vector<LuaProcess> processes, const std::string& said, const LuaProcesses& found,
                      std::optional<bool> subprocesses) {
  if (processes.size() == 1) return processes.front().pid;
  const std::vector<pid_t> first = not_started_by_others(processes);
  if (subprocesses.value_or(false) && first.size() == 1) return first.front();
  measure_cpu(processes);
  std::string text = said;
  if (first.size() == 1 && subprocesses)
    text += fmt::format(", and {} has started the others: -s looks at all of them. Or say which one with --pid",
                        first.front());
  else text += "; say which one with --pid";
  constexpr double busy = 1;  // percent
  if (processes.front().cpu_percent >= busy)
    text += fmt::format(", as --pid {} for the busiest", processes.front().pid);
  return Error{Cause::usage, listed(text + ":", found, processes)};
}

Result<int> choose_only(std::optional<bool> subprocesses) {
  LuaProcesses found = find_lua_processes(false);
  const std::vector<LuaProcess> best = best_of(found.processes);
  if (!best.empty())
    return choose_of(best, fmt::format("--pid auto: {} processes run Lua", best.size()), found, subprocesses);
  if (found.processes.empty()) return Error{Cause::no_lua, listed("--pid auto: no process runs Lua.", found, {})};
  const std::string refusal = found.processes.front().refusal;
  measure_cpu(found.processes);
  return Error{Cause::permission, listed(refusal, found, found.processes)};
}

struct Matches {
  std::vector<pid_t> exact, partial;  // partial: other processes whose command line contains the name
};

Matches processes_named(const std::string& name) {
  Matches matches;
  // luaspy's own ancestors (sudo, a shell) contain its command line in theirs.
  const std::vector<pid_t> own = ancestors_of(::getpid());
  for (const pid_t pid : system::numeric_entries("/proc")) {
    if (is_luaspy(pid)) continue;
    const std::string comm = system::read_file(fmt::format("/proc/{}/comm", pid)).value_or("");
    const std::string executable = base_name(
        system::read_link(fmt::format("/proc/{}/exe", living_thread(pid))).value_or(""));
    if (comm == name + '\n' || executable == name) matches.exact.push_back(pid);
    else if (command_of(pid).find(name) != std::string::npos && std::ranges::find(own, pid) == own.end())
      matches.partial.push_back(pid);
  }
  return matches;
}

Result<int> choose_named(const std::string& name, std::optional<bool> subprocesses) {
  const Matches matches = processes_named(name);
  const LuaProcesses found = find_lua_processes(false);
  for (const std::vector<pid_t>* const pids : {&matches.exact, &matches.partial}) {
    std::vector<LuaProcess> with_lua;
    std::ranges::copy_if(found.processes, std::back_inserter(with_lua), [&](const LuaProcess& process) {
      return std::ranges::find(*pids, process.pid) != pids->end();
    });
    if (std::ranges::any_of(with_lua, is_ours)) with_lua = best_of(with_lua);
    if (with_lua.empty()) continue;
    const std::string said = fmt::format("--name {}: {} processes with Lua match", printable(name), with_lua.size());
    return choose_of(with_lua, said, {}, subprocesses);
  }
  for (const std::vector<pid_t>* const pids : {&matches.exact, &matches.partial}) {
    if (pids->size() == 1) return pids->front();  // the command itself reports whether and why it cannot be looked at
    if (pids->empty()) continue;
    std::string text = fmt::format(
        "--name {}: {} processes match, but luaspy saw no Lua in any of them:", printable(name), pids->size());
    constexpr std::size_t most_listed = 20;
    for (const pid_t pid : std::span(*pids).first(std::min(most_listed, pids->size())))
      text += fmt::format("\n  {} {}", pid, printable(command_of(pid), 100));
    return Error{Cause::no_lua, listed(text, found, {})};
  }
  return Error{
      Cause::no_such_process,
      fmt::format("--name {}: no process has this name, or contains it in its command line.", printable(name))};
}

}  // namespace

Result<int> choose_target(const std::string& name, std::optional<bool> subprocesses) {
  if (!has_own_proc()) return explain_absence(0);
  return name.empty() ? choose_only(subprocesses) : choose_named(name, subprocesses);
}

}  // namespace luaspy
