#include "dump/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "attach/refusal.h"
#include "base/display_text.h"
#include "dump/core_look.h"
#include "dump/dump_json.h"
#include "dump/dump_text.h"
#include "dump/inspection.h"
#include "sampling/debuginfod.h"
#include "sampling/kernel_access.h"
#include "sampling/process_tree.h"
#include "system/calls.h"
#include "system/signals.h"
#include "system/standard_output.h"
#include "system/terminal.h"

namespace luaspy {
namespace {

// Uses a stream, because stdio gives up when a signal interrupts it.
void print(const std::string& text) { std::cout << text << std::flush; }
Result<void> printed() { return system::flush_standard_output("the dump"); }

// Text for people: as wide as the terminal is.
void print_text(const std::string& text) {
  const system::Terminal terminal = system::terminal_of(1);
  print(terminal.is_one ? wrapped(without_invisible(text), terminal.width) : text);
}

// Signals end the sleep early: an alarm comes ten times a second (see system::watch_signals). In
// between, threads that did not stop in time are released.
void pause(const ProcessTree& tree, double seconds) {
  const auto end = system::Clock::now() +
                   std::chrono::duration_cast<system::Clock::duration>(std::chrono::duration<double>(seconds));
  while (system::Clock::now() < end && system::end_requested() == 0) {
    for (const auto& session : tree.sessions()) session->target().tracer().let_go_pending();
    (void)system::sleep_until(end);
  }
}

InspectOptions inspect_options(const DumpOptions& options) {
  return {options.locals, options.verbose ? verbose_limits : ValueLimits{}, options.coroutines, options.traces,
          options.mode};
}

// Finds threads that want to run but have no CPU, by how much CPU time they get: watches all
// processes for a short time and, if any thread gets too little, for a second, or `interval` if that
// is less (s). In less than the short time nothing can be told. A signal ends it. No thread is stopped by now.
void watch_running(const ProcessTree& tree, std::vector<Inspector>& inspectors, std::vector<ProcessLook>& looks,
                   double interval) {
  constexpr double first = 0.05;  // s
  const double whole = std::min(1., interval);
  if (whole < first) return;
  std::vector<std::vector<std::pair<pid_t, CpuWatch>>> watches;
  for (std::size_t i = 0; i < looks.size(); ++i) watches.push_back(inspectors[i].watch_running(looks[i]));
  if (std::ranges::all_of(watches, [](const auto& of_process) { return of_process.empty(); })) return;
  pause(tree, first);
  const auto waits = [](const auto& watch) { return watch.second.so_far().has_value(); };
  const bool any_waits = std::ranges::any_of(
      watches, [&](const auto& of_process) { return std::ranges::any_of(of_process, waits); });
  if (!any_waits || system::end_requested() != 0) return;
  pause(tree, whole - first);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    for (const auto& [tid, watch] : watches[i])
      std::ranges::find(looks[i].threads, tid, &ThreadLook::tid)->cpu_wait = watch.so_far();
  }
}

using Looks = std::vector<ProcessLook>;  // at one process, in the order of time

// Looks at each process, the target first. Leaves out processes that ended before they could be
// looked at. Text is printed after each round.
std::vector<Looks> look_at_all(ProcessTree& tree, const DumpOptions& options) {
  std::vector<Inspector> inspectors;
  for (const auto& session : tree.sessions()) inspectors.emplace_back(*session, inspect_options(options));
  std::vector<Looks> all(inspectors.size());
  const Paint paint(system::terminal_of(1).colours);
  for (int i = 0; i < options.count && system::end_requested() == 0; ++i) {
    if (i != 0) pause(tree, options.interval);
    std::vector<ProcessLook> looks;
    for (Inspector& inspector : inspectors) looks.push_back(inspector.look());
    // Later, movements() says how much of a CPU each had.
    if (i == 0) watch_running(tree, inspectors, looks, options.interval);
    for (std::size_t which = 0; which < all.size(); ++which) {
      ProcessLook& look = looks[which];
      if (look.threads.empty()) continue;
      if (!options.json)
        print_text((i == 0 && which == 0 ? "" : "\n") +
                   (all[which].empty() ? to_text(look, options.coroutines, paint)
                                       : to_text(look, all[which].back(), options.coroutines, paint)));
      all[which].push_back(std::move(look));
    }
  }
  std::erase_if(all, [](const Looks& looks) { return looks.empty(); });
  return all;
}

// Dumps a core file.
Result<int> dump_core(const DumpOptions& options) {
  if (options.target.debuginfod) {
    if (const Result<void> used = use_debuginfod(); !used) return used.error();
  }
  const Result<std::unique_ptr<CoreFile>> core = CoreFile::open({options.core, options.executable, options.root});
  if (!core) return core.error();
  CoreLookOptions look_options;
  look_options.inspect = inspect_options(options);
  look_options.merging = {options.mode == Mode::native, options.traces};
  look_options.limits.count_left_out = true;
  const Result<ProcessLook> look = look_at(**core, options.core, look_options);
  if (!look) return look.error();
  if (options.json) print(to_json({{*look}}, options.coroutines));
  else print_text(to_text(*look, options.coroutines, Paint(system::terminal_of(1).colours)));
  if (const Result<void> written = printed(); !written) return written.error();
  return 0;
}

// Reports running threads that could not be stopped: as an Error if no other thread has a stack,
// else as a note.
Result<void> check_refused(const std::vector<Looks>& all) {
  std::optional<Error> cause;
  bool any_stack = false;
  for (const Looks& looks : all) {
    for (const ThreadLook& thread : looks.back().threads) {
      any_stack |= thread.sample.loss == Loss::none;
      if (thread.sample.loss == Loss::refused && !cause) cause = explain_no_stop(looks.back().pid);
    }
  }
  if (!cause) return {};
  if (!any_stack) return *cause;
  fmt::print(stderr, "luaspy: {}\n", cause->text);
  return {};
}

}  // namespace

Result<int> dump(const DumpOptions& options) {
  if (!options.core.empty()) return dump_core(options);
  SamplerOptions sampler_options;
  sampler_options.merging = {options.mode == Mode::native, options.traces};
  sampler_options.idle = true;
  sampler_options.limits.count_left_out = true;
  sampler_options.patience = std::chrono::seconds(2);
  sampler_options.looks_once = true;
  sampler_options.kernel = kernel_for_sleeping();
  Result<ProcessTree> opened = ProcessTree::open(options.target, sampler_options, options.subprocesses);
  if (!opened) return opened.error();
  ProcessTree& tree = *opened;
  if (options.mode != Mode::native) {
    if (const Result<void> lua = tree.check_lua(); !lua) return lua.error();
  }
  system::watch_signals();
  const std::vector<Looks> all = look_at_all(tree, options);
  if (all.empty())
    return Error{Cause::target_ended,
                 fmt::format("Process {} ended while luaspy looked at it.", tree.target().target().process().pid())};
  if (options.json) print(to_json(all, options.coroutines));
  for (const Looks& looks : all) {
    if (!options.json && looks.size() > 1) print_text(to_text(movements(looks), looks));
  }
  if (const Result<void> written = printed(); !written) return written.error();
  if (const Result<void> looked = check_refused(all); !looked) return looked.error();
  StackReader& reader = tree.sessions().front()->sampler().reader();
  if (options.mode != Mode::native && !reader.images().empty() && !reader.has_state()) {
    return Error{
        Cause::not_initialised,
        fmt::format("{} is mapped in process {}, but there is no lua_State in its memory: Lua is not initialised yet.",
                    reader.images().front().name(), all.front().front().pid)};
  }
  return 0;
}

}  // namespace luaspy
