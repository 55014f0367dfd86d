#include "jit/jit.h"

#include <fmt/format.h>

#include <iostream>
#include <utility>
#include <vector>

#include "attach/refusal.h"
#include "base/say.h"
#include "jit/jit_json.h"
#include "jit/jit_text.h"
#include "jit/jit_verdict.h"
#include "recording/await_command.h"
#include "recording/watched_compilers.h"
#include "sampling/process_tree.h"
#include "sampling/sampling_loop.h"
#include "system/signals.h"
#include "system/standard_output.h"

namespace luaspy {
namespace {

// Counts samples, and prints what is seen of compilers.
class JitSink : public CodeTimeSink {
 public:
  JitSink(ProcessTree& tree, WatchedCompilers& compilers, const JitOptions& options)
      : CodeTimeSink(tree.tables().stacks), compilers_(compilers), options_(options) {}

  void look(const LoopCounts&) override {
    if (compilers_.find_now_and_then()) handle_events(false);
  }
  bool has_enough() override { return !written_; }

  void handle_events(bool at_end) {
    std::string text;
    const auto see = [&](const JitSeen& seen, const JitEvent& event) {
      if (options_.watch) text += options_.json ? event_json(seen, event) : event_text(seen, event);
    };
    if (at_end) compilers_.see_last(see);
    else compilers_.see_new(see);
    if (text.empty()) return;
    std::cout << text;
    if (written_) written_ = system::flush_standard_output("the events");
  }

  const Result<void>& written() const { return written_; }

 private:
  WatchedCompilers& compilers_;
  const JitOptions& options_;
  Result<void> written_;
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
  system::watch_signals();  // before the program starts: Ctrl-C may come at once
  Result<ProcessTree> opened = ProcessTree::open(target, sampler_options, options.subprocesses);
  if (!opened) return opened.error();
  ProcessTree& tree = *opened;
  if (!tree.target().launched()) {
    if (const Result<void> lua = tree.check_lua(); !lua) return lua.error();
  }
  WatchedCompilers compilers(tree, WatchThread::Surveys::some);
  JitSink sink(tree, compilers, options);
  compilers.find();
  compilers.begin();
  if (options.watch) say("luaspy: watching process {}\n", tree.target().target().process().pid());
  LoopCounts counts;
  run_loop(tree,
           {.rate = options.rate,
            .duration = options.duration,
            .max_stopped = options.max_stopped,
            .always_stop = options.always_stop},
           sink, counts);
  compilers.find();
  sink.handle_events(false);
  compilers.stop();
  sink.handle_events(true);
  Result<void> printed = sink.written();
  std::vector<JitSeen> seen = compilers.all();
  const bool has_luajit = !seen.empty();
  if (has_luajit && printed)
    printed = print(make_jit_report(sink.time(), tree.tables().stacks, static_cast<double>(counts.duration_ns) / 1e9,
                                    std::move(seen)),
                    options);
  if (compilers.left_some_out()) say("luaspy: the process has more Luas than are looked at; these are the first\n");
  const int status = await_command(tree, options.end_command);
  if (!printed) return printed.error();
  if (has_luajit || status != 0) return status;
  if (system::end_requested() != 0 && sink.time().samples == 0 && !compilers.has_others())
    return Error{Cause::no_samples, "No samples: luaspy was asked to end before it saw a LuaJIT run."};
  return Error{Cause::no_lua, compilers.has_others()
                                  ? "No LuaJIT: what runs there is another Lua, which has no compiler."
                                  : "No LuaJIT was seen to run."};
}

}  // namespace luaspy
