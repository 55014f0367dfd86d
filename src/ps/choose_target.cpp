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
std::string listed(std::string text, const LuaProcesses& found, std::vector<LuaProcess> processes) {
  measure_cpu(processes);
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

Result<int> choose_only() {
  const LuaProcesses found = find_lua_processes(false);
  const std::vector<LuaProcess> best = best_of(found.processes);
  if (best.size() == 1) return best.front().pid;
  if (best.size() > 1)
    return Error{
        Cause::usage,
        listed(fmt::format("--pid auto: {} processes run Lua; say which one with --pid:", best.size()), found, best)};
  if (!found.processes.empty())
    return Error{Cause::permission, listed(found.processes.front().refusal, found, found.processes)};
  return Error{Cause::no_lua, listed("--pid auto: no process runs Lua.", found, {})};
}

// luaspy's own ancestors (sudo, a shell) contain its command line in theirs.
std::vector<pid_t> ancestors() {
  std::vector<pid_t> pids;
  constexpr int most = 100;
  for (pid_t pid = ::getpid(); pid > 0 && static_cast<int>(pids.size()) < most;) {
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

struct Matches {
  std::vector<pid_t> exact, partial;  // partial: other processes whose command line contains the name
};

Matches processes_named(const std::string& name) {
  Matches matches;
  const std::vector<pid_t> own = ancestors();
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

Result<int> choose_named(const std::string& name) {
  const Matches matches = processes_named(name);
  const LuaProcesses found = find_lua_processes(false);
  for (const std::vector<pid_t>* const pids : {&matches.exact, &matches.partial}) {
    std::vector<LuaProcess> with_lua;
    std::ranges::copy_if(found.processes, std::back_inserter(with_lua), [&](const LuaProcess& process) {
      return std::ranges::find(*pids, process.pid) != pids->end();
    });
    if (std::ranges::any_of(with_lua, is_ours)) with_lua = best_of(with_lua);
    if (with_lua.size() == 1) return with_lua.front().pid;
    if (with_lua.size() > 1)
      return Error{Cause::usage, listed(fmt::format("--name {}: {} processes with Lua match; say which one with --pid:",
                                                    printable(name), with_lua.size()),
                                        {}, with_lua)};
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

Result<int> choose_target(const std::string& name) {
  if (!has_own_proc()) return explain_absence(0);
  return name.empty() ? choose_only() : choose_named(name);
}

}  // namespace luaspy
