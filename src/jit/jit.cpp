#include "jit/jit.h"

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "attach/refusal.h"
#include "base/say.h"
#include "jit/jit_json.h"
#include "jit/jit_text.h"
#include "jit/jit_verdict.h"
#include "jitwatch/watch_thread.h"
#include "recording/await_command.h"
#include "sampling/process_tree.h"
#include "sampling/sampling_loop.h"
#include "system/signals.h"
#include "system/standard_output.h"

namespace luaspy {
namespace {

// Counts samples, finds the Luas to watch, and prints what is seen of them.
class JitSink : public CodeTimeSink {
 public:
  JitSink(ProcessTree& tree, WatchThread& watch, const JitOptions& options)
      : CodeTimeSink(tree.tables().stacks), tree_(tree), watch_(watch), options_(options) {}

  void look(const LoopCounts&) override {
    constexpr std::chrono::milliseconds pause(50);
    if (system::Clock::now() < next_) return;
    next_ = system::Clock::now() + pause;
    find_luas();
    handle_events(false);
  }
  bool has_enough() override { return !written_; }

  // What CPU samplers add meanwhile is seen at the next call.
  void find_luas() {
    for (const auto& session : tree_.sessions()) {
      StackReader& reader = session->sampler().reader();
      if (!reader.lock_soon()) continue;
      if (searched_.insert(session->program()).second) reader.find_states();  // of those that sleep, too
      for (const auto& [G, lua] : reader.lua().global_states()) {
        if (lua->kind() != LuaKind::luajit) has_others_ = true;
        else watch_.add(session->pid(), *lua, G);
      }
      reader.unlock();
    }
  }
  // Names the C functions of new events while they can be named, and prints them.
  void handle_events(bool at_end) {
    std::string text;
    const auto act = [&](const WatchThread::Watchers& watchers) {
      for (const auto& watcher : watchers) {
        const JitKnowledge& knowledge = watcher->knowledge();
        name_functions(knowledge);
        want_functions(*watcher);
        std::size_t& printed = printed_[&knowledge];
        for (; printed < knowledge.events.size(); ++printed) {
          const JitSeen seen = seen_of(*watcher);
          const JitEvent& event = knowledge.events[printed];
          if (options_.watch) text += options_.json ? event_json(seen, event) : event_text(seen, event);
        }
      }
    };
    if (at_end) watch_.visit(act);
    else if (!watch_.try_visit(act)) return;
    if (text.empty()) return;
    std::cout << text;
    if (written_) written_ = system::flush_standard_output("the events");
  }

  JitSeen seen_of(const JitWatcher& watcher) const {
    const pid_t pid = watcher.knowledge().pid;
    return {&watcher.knowledge(), &watcher.reader(), [this, pid](Address function) {
              const auto known = names_.find({pid, function});
              return known != names_.end() ? known->second : "";
            }};
  }
  const Result<void>& written() const { return written_; }
  bool has_others() const { return has_others_; }

 private:
  // What samples have shown: in a large heap, a survey may not come to it.
  void want_functions(JitWatcher& watcher) const {
    for (const auto& session : tree_.sessions()) {
      if (session->pid() == watcher.knowledge().pid)
        watcher.want(session->sampler().reader().lua().names().known_prototypes());
    }
  }
  void name_functions(const JitKnowledge& knowledge) {
    for (const auto& [start, attempts] : knowledge.attempts) {
      for (const JitAbort& abort : attempts.aborts) {
        if (abort.detail.kind == JitDetail::Kind::function) name_function(knowledge, abort.detail.function);
      }
    }
  }
  void name_function(const JitKnowledge& knowledge, Address closure) {
    if (names_.contains({knowledge.pid, closure})) return;
    for (const auto& session : tree_.sessions()) {
      if (session->pid() != knowledge.pid) continue;
      names_[{knowledge.pid, closure}] = c_function_name(session->sampler().reader().lua().names(), knowledge, closure);
    }
  }

  ProcessTree& tree_;
  WatchThread& watch_;
  const JitOptions& options_;
  system::Clock::time_point next_{};
  std::map<std::pair<pid_t, Address>, std::string> names_;  // of C functions
  std::map<const JitKnowledge*, std::size_t> printed_;      // how many events
  Result<void> written_;
  std::set<std::uint64_t> searched_;  // programs
  bool has_others_ = false;
};

Result<void> print(JitReport report, const JitOptions& options) {
  if (options.watch) return {};
  report.verdict = jit_verdict(report);
  std::cout << (options.json ? jit_json(report) : jit_text(report, static_cast<std::size_t>(options.rows)));
  return system::flush_standard_output("the report");
}

}  // namespace

Result<int> jit(const JitOptions& options) {
  SamplerOptions sampler_options;
  sampler_options.merging.traces = true;
  const bool prints_alone = options.json || options.watch;
  const TargetOptions target = with_output_kept(options.target, prints_alone ? "-" : "");
  Result<ProcessTree> opened = ProcessTree::open(target, sampler_options, options.subprocesses);
  if (!opened) return opened.error();
  ProcessTree& tree = *opened;
  if (!tree.target().launched()) {
    if (const Result<void> lua = tree.check_lua(); !lua) return lua.error();
  }
  system::watch_signals();
  WatchThread watch;
  JitSink sink(tree, watch, options);
  sink.find_luas();
  watch.begin();
  if (options.watch) say("luaspy: watching process {}\n", tree.target().target().process().pid());
  LoopCounts counts;
  run_loop(tree,
           {.rate = options.rate,
            .duration = options.duration,
            .max_stopped = options.max_stopped,
            .always_stop = options.always_stop},
           sink, counts);
  sink.find_luas();
  sink.handle_events(false);
  watch.stop();
  sink.handle_events(true);
  Result<void> printed = sink.written();
  bool has_luajit = false;
  watch.visit([&](const WatchThread::Watchers& watchers) {
    std::vector<JitSeen> seen;
    for (const auto& watcher : watchers) seen.push_back(sink.seen_of(*watcher));
    has_luajit = !seen.empty();
    if (!has_luajit || !printed) return;
    printed = print(make_jit_report(sink.time(), tree.tables().stacks, static_cast<double>(counts.duration_ns) / 1e9,
                                    std::move(seen)),
                    options);
  });
  if (watch.left_some_out()) say("luaspy: the process has more Luas than are looked at; these are the first\n");
  const int status = await_command(tree, options.end_command);
  if (!printed) return printed.error();
  if (has_luajit || status != 0) return status;
  return Error{Cause::no_lua, sink.has_others() ? "No LuaJIT: what runs there is another Lua, which has no compiler."
                                                : "No LuaJIT was seen to run."};
}

}  // namespace luaspy
