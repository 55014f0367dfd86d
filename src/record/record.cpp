#include "record/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <span>
#include <utility>

#include "attach/halt.h"
#include "attach/program_name.h"
#include "attach/refusal.h"
#include "base/paint.h"
#include "base/say.h"
#include "base/text.h"
#include "base/why_empty.h"
#include "events/label_table.h"
#include "output/output_file.h"
#include "output/summary.h"
#include "output/write_options.h"
#include "profile/amount_text.h"
#include "recording/await_command.h"
#include "recording/carried_recording.h"
#include "recording/compiler_marks.h"
#include "recording/coroutine_looks.h"
#include "recording/metadata_of_target.h"
#include "recording/recording.h"
#include "recording/slow_requests.h"
#include "recording/source_collector.h"
#include "sampling/kernel_access.h"
#include "sampling/lua_descendants.h"
#include "sampling/process_tree.h"
#include "sampling/sampling_loop.h"
#include "system/background.h"
#include "system/calls.h"
#include "system/launch.h"
#include "system/progress.h"
#include "system/signals.h"
#include "system/terminal.h"

namespace luaspy {
namespace {

constexpr double raw_flush_s = 1;  // how much of a raw recording a crash may cost, without --every

std::string progress_text(const Profile& profile, std::optional<double> duration, std::int64_t passed_ns) {
  const double passed = static_cast<double>(passed_ns) / 1e9;
  if (!duration) return fmt::format("{:.0f} s, {}", passed, count_of(profile.samples(), "sample"));
  return fmt::format("{}{:.0f} s left, {}", system::progress_bar(passed / *duration), std::max(*duration - passed, 0.0),
                     count_of(profile.samples(), "sample"));
}

class Recorder : public Recording {
 public:
  Recorder(const RecordOptions& options, ProcessTree& tree, OutputFile& output)
      : Recording(tree.tables(), shape_for(output.format(), options.shape),
                  !output.is_raw() && output.format().needs_order()),
        options_(options),
        tree_(tree),
        output_(output),
        sources_(tree.target().launched() ? tree.target().target().process().pid() : 0),
        about_(about_recording(tree, options.shape.mode, options.rate, options.max_stopped)) {
    if (options.every) every_ns_ = static_cast<std::int64_t>(*options.every * 1e9);
    else if (output.is_raw()) every_ns_ = static_cast<std::int64_t>(raw_flush_s * 1e9);
    next_ns_ = every_ns_;
    if (options.allocations) keep_allocations(shape_for(output.format(), options.shape));
    if (options.marks_compiler) marks_.emplace(tree);
    if (options.coroutines) {
      keep_suspended(shape_for(output.format(), options.shape));
      coroutines_.emplace(tree, options.coroutine_rate, options.slower.has_value());
    }
    if (output.is_raw()) write_raw(output.stream_behind());
    else if (output.format().carries_recording) write_raw(carried_);
  }

  void begin(system::Clock::time_point start) override {
    if (marks_) marks_->start(start);
    if (coroutines_) coroutines_->start(start);
  }
  void look(const LoopCounts& counts) override {
    if (marks_) marks_->look(*this);
    if (coroutines_) coroutines_->look(*looks_to_);
    if (has_sources()) sources_.collect(*this);  // at once: a subprocess may end soon
    if (counts.duration_ns >= program_ns_) {
      describe_program(tree_, about_);
      program_ns_ += 200'000'000;
    }
    if (every_ns_ != 0 && counts.duration_ns >= next_ns_) {
      next_ns_ = counts.duration_ns + every_ns_;
      write_so_far(counts);
    }
    if (counts.unheard != unheard_) {
      unheard_ = counts.unheard;
      progress_.clear();
      say("{}", unheard_text);
    }
    if (progress_.is_due()) progress_.show(progress_text(profile(), options_.duration, counts.duration_ns));
  }
  void counted(const ThreadInfo& thread, StackId stack) override {
    if (has_sources()) sources_.add(thread.pid, stack);
  }
  bool has_enough() override { return !failed_.has_value(); }
  void before_suspend() override { progress_.clear(); }

  // Looks at coroutines are given to the sink instead, which gives them to this one.
  void send_looks_through(SampleSink& sink) { looks_to_ = &sink; }
  void end_looks() {
    if (coroutines_) coroutines_->finish(*looks_to_);
  }
  // After end_looks(). `writes`: there is a profile that is worth a file.
  Result<void> finish(const LoopCounts& counts, bool writes) {
    if (has_sources()) sources_.finish(*this);
    if (marks_) marks_->finish(*this, counts.duration_ns);
    (void)writing_.finish();  // what it has written is replaced now
    Recording::finish();
    update_metadata(counts, true);
    progress_.clear();
    return writes ? write() : Result<void>();
  }

  std::string text_of_rest() const {
    std::string text = marks_ ? marks_->text() : "";
    if (coroutines_)
      text += fmt::format("luaspy: suspended coroutines: {}\n{}", suspended_summary(*suspended()), coroutines_->text());
    return text;
  }

 private:
  // Making a page takes a second if it has much to show, and ticks do not wait. The one before may still be in the
  // making: then there is one less.
  void write_so_far(const LoopCounts& counts) {
    if (output_.is_raw() || !output_.is_file()) {
      update_metadata(counts, false);
      if (!output_.is_raw()) failed_ = write();
    } else if (!writing_.is_busy()) {
      if (!writing_.finish() && !std::exchange(has_complained_, true)) {
        progress_.clear();
        say("luaspy: {} The recording goes on, and is written again.\n", output_.incomplete().text);
      }
      update_metadata(counts, false);
      output_.keep_former();
      writing_.start([this] { return rewrite().has_value(); });
    }
  }
  bool has_sources() const { return !options_.no_source && (output_.is_raw() || output_.format().carries_recording); }
  WriteOptions write_options() const {
    return {options_.shape.lines, options_.threads, options_.shape.mode, carried_bytes_.bytes()};
  }
  Result<void> rewrite() {
    resolve_names();
    return output_.rewrite(profile(), write_options());
  }
  Result<void> write() {
    resolve_names();
    return output_.is_raw() ? output_.finish() : output_.write(profile(), write_options());
  }
  void update_metadata(const LoopCounts& counts, bool complete) {
    describe_luas(tree_, about_);
    about_.duration_ns = counts.duration_ns;
    about_.ticks = counts.ticks;
    if (options_.allocations) about_.sampled_ns = counts.sampled_ns;
    about_.cpu = counts.cpu;
    about_.sampled_cpu_ns = counts.sampled_cpu_ns;
    about_.complete = complete;
    set_metadata(about_);
    if (output_.is_raw() && !output_.stream()) failed_ = output_.finish();
  }

  const RecordOptions& options_;
  ProcessTree& tree_;
  OutputFile& output_;
  CarriedRecording carried_bytes_;
  std::ostream carried_{&carried_bytes_};
  SourceCollector sources_;
  std::optional<CompilerMarks> marks_;
  std::optional<CoroutineLooks> coroutines_;
  SampleSink* looks_to_ = this;
  system::ProgressLine progress_;
  Metadata about_;
  std::int64_t program_ns_ = 0;
  std::int64_t unheard_ = 0;
  std::int64_t every_ns_ = 0, next_ns_ = 0;  // 0: write only at the end
  system::Background writing_;
  bool has_complained_ = false;  // that the file could not be written meanwhile
  Result<void> failed_;          // to write
};

constexpr double high_rate = 2000;             // Hz
constexpr std::int64_t soon_ns = 500'000'000;  // too short a time to tell much about a program

// The profile may have more than `mode` shows: a page has everything.
void print_end(const Profile& profile, Mode mode, const OutputFile& output, const LoopCounts& counts, bool written,
               const std::string& more) {
  if (const std::string hottest = hottest_text(profile, mode); !hottest.empty()) say("\n{}\n", hottest);
  if (!more.empty()) say("{}\n", more);
  constexpr int further_in = 2;
  std::string text = "luaspy: " + summary_text(profile);
  if (const std::string precedence = precedence_text(counts.precedence); !precedence.empty())
    text += "  real-time: " + precedence + '\n';
  say("{}", wrapped(text, system::terminal_of(2).width, further_in));
  if (counts.target_ended) say("  the target has ended\n");
  if (written && !output.to_stdout()) say("  written: {}\n  next: {}\n", output.path(), output.next_step());
}

// What goes on after the target's end, and how to record it; "" if nothing does.
std::string survivors_text(ProcessTree& tree) {
  constexpr std::size_t most = 5, most_command = 80;
  const std::vector<pid_t> pids = tree.survivors();
  std::string text;
  for (const pid_t pid : std::span(pids).first(std::min(most, pids.size())))
    text += fmt::format("  process {} ({}), which it has started, lives on: luaspy record --pid {}\n", pid,
                        printable(command_of(pid), most_command), pid);
  if (pids.size() > most) text += fmt::format("  {} more that it has started live on\n", pids.size() - most);
  return text;
}

// Why there is nothing to show; no text: there is something.
// `descendants`: of a target of which nothing else is looked at.
Error why_nothing(const RecordOptions& options, ProcessTree& tree, const Profile& profile, const LoopCounts& counts,
                  std::optional<LuaDescendants>& descendants) {
  const bool launched = tree.target().launched();
  const bool ended_soon = counts.target_ended && counts.duration_ns < soon_ns && profile.samples() == 0;
  const pid_t pid = tree.target().target().process().pid();
  if (launched && !ended_soon && options.shape.mode != Mode::native && options.shape.mode != Mode::all &&
      !tree.has_lua())
    return {Cause::no_lua, fmt::format("No Lua: neither {} nor anything that it has started was seen to run Lua. "
                                       "--mode native shows other programs.",
                                       options.target.command.front())};
  if (profile.samples() != 0) return {};
  if (options.slower && profile.losses(Loss::left_out) != 0)
    return {Cause::no_samples, "No samples: --slower leaves none."};
  if (!options.shape.only.empty() || !options.shape.ignore.empty())
    return {Cause::no_samples, "No samples: --only and --ignore leave none."};
  if (launched && counts.target_ended)
    return {Cause::no_samples,
            fmt::format("No samples: the command ended after {:.0f} ms, before luaspy could take one.{}",
                        static_cast<double>(counts.duration_ns) / 1e6,
                        options.rate < high_rate ? fmt::format(" -r {:g} looks more often.", high_rate) : "")};
  if (const std::string why = why_still(pid); !why.empty())
    return {Cause::no_samples, fmt::format("No samples: the target is {}.", why)};
  EmptyFacts facts{static_cast<double>(counts.duration_ns) / 1e9,
                   profile.idle(),
                   profile.waiting(),
                   {},
                   counts.cpu.lua_ns + counts.cpu.unknown_ns};
  for (std::size_t i = 0; i < loss_count; ++i) facts.losses[i] = profile.losses(static_cast<Loss>(i));
  std::string text = fmt::format("No samples: {}.", why_empty(facts));
  const std::optional<LuaDescendants::Busy> busy = descendants ? descendants->busiest() : std::nullopt;
  if (busy) text += ' ' + busy_text(*busy, "record", pid);
  else if (facts.asleep != 0 && !options.idle) text += " --idle samples sleeping threads too.";
  return {Cause::no_samples, std::move(text)};
}

// One file of a recording, and what became of it.
struct Part {
  LoopCounts counts;
  Result<void> ran, written;
  Error nothing;  // why it has no samples; no text: it has some
  bool refused = false;
  bool is_written = false;

  bool shows() const { return nothing.text.empty(); }
};

// `is_last` is asked once, when it has been recorded: whether no other part follows.
Part record_part(const RecordOptions& options, const Alongside* alongside, ProcessTree& tree, OutputFile& output,
                 const KernelAccess& kernel, const std::function<bool(const LoopCounts&)>& is_last) {
  Part part;
  std::optional<LuaDescendants> descendants;
  if (!tree.has_subprocesses()) descendants.emplace(tree.target().target().process().pid());
  Recorder recorder(options, tree, output);
  const LoopOptions loop_options = {options.rate, options.duration, options.max_stopped, options.always_stop,
                                    kernel.logs};
  std::optional<SlowRequests> slow;
  if (options.slower) {
    slow.emplace(recorder, tree.tables(), static_cast<std::int64_t>(*options.slower * 1000));
    recorder.send_looks_through(*slow);
  }
  if (alongside != nullptr) part.ran = alongside->run(tree, loop_options, recorder, part.counts);
  else run_loop(tree, loop_options, slow ? static_cast<SampleSink&>(*slow) : recorder, part.counts);
  recorder.end_looks();
  if (slow) slow->finish();
  const LoopCounts& counts = part.counts;
  // Of a program that only waits there is that to show.
  const bool only_waits = recorder.profile().samples() == 0 && recorder.suspended() != nullptr &&
                          recorder.suspended()->samples() != 0;
  if (!part.ran) part.nothing = part.ran.error();
  else if (!only_waits || !output.is_raw())
    part.nothing = why_nothing(options, tree, recorder.profile(), counts, descendants);
  if (only_waits && part.nothing.cause == Cause::no_samples)
    part.nothing.text += " -o FILE.luaspy keeps where its coroutines waited (luaspy report FILE.luaspy --coroutines).";
  part.written = recorder.finish(counts, part.shows());
  part.refused = recorder.profile().losses(Loss::refused) != 0;
  part.is_written = part.shows() && part.written.has_value();
  if (!is_last(counts)) {
    if (part.is_written) say("luaspy: written: {}\n", output.path());
  } else if (part.ran && (part.shows() || part.refused || !counts.target_ended || counts.duration_ns >= soon_ns)) {
    print_end(recorder.profile(), options.shape.mode, output, counts, part.is_written,
              part.shows() && alongside != nullptr ? alongside->text(recorder) : std::string());
  }
  if (slow) say("luaspy: {}\n", slow->text());
  if (part.shows()) say("{}", recorder.text_of_rest());
  else output.discard();
  return part;
}

// Several files, each of a part of the time: --every with a name that has the time in it.
bool has_parts(const RecordOptions& options) { return options.every && options.output.find("%t") != std::string::npos; }

// The last part, after the others have been written. `output`: of the first one, and then of the last one. A part that
// could not be written ends nothing, unless it is raw, which would fail again at once; an Error says it in the end.
Part record_parts(const RecordOptions& options, const Alongside* alongside, ProcessTree& tree,
                  std::optional<OutputFile>& output, const KernelAccess& kernel,
                  const std::function<Result<void>()>& open_next) {
  if (!has_parts(options)) return record_part(options, alongside, tree, *output, kernel, [](auto&) { return true; });
  constexpr double forever = 1e9;
  double left = options.duration.value_or(forever);
  RecordOptions of_part = options;
  of_part.every.reset();
  Result<void> all_written;
  bool any = false;
  for (;;) {
    of_part.duration = std::min(*options.every, left);
    left -= *of_part.duration;
    bool ends = false;
    const auto is_last = [&](const LoopCounts& counts) {
      return ends = counts.target_ended || system::end_requested() != 0 || left <= 0;
    };
    Part part = record_part(of_part, alongside, tree, *output, kernel, is_last);
    any |= part.shows();
    if (all_written && !part.written) all_written = part.written;
    if (part.ran && !ends && (part.written || !output->is_raw())) {
      if (!part.written) say("luaspy: {}\n", part.written.error().text);
      if (const Result<void> opened = open_next(); opened) continue;
      else part.written = opened;
    }
    if (!all_written) part.written = all_written;
    if (any && part.ran) part.nothing = {};  // the end alone may have none
    return part;
  }
}

// Becomes luaspy view: whoever records opens no socket.
Result<int> show(const std::string& path) {
  const system::Failure failure = system::become({"luaspy", "view", "--", path});
  return Error{Cause::internal, fmt::format("Cannot start luaspy view: {}.", failure.text())};
}

// What a browser shows, or a site that luaspy view names.
Result<void> check_opens(const RecordOptions& options, const Format* format) {
  if (!options.opens || (format == nullptr && options.output.empty())) return {};
  const bool has_ending = format != nullptr && (options.output.empty() || options.output.ends_with(format->extension));
  for (const char* const name : {"flamegraph", "svg", "speedscope", "firefox"}) {
    if (has_ending && format->name == name) return {};
  }
  return Error{Cause::usage, "--open shows a page or a picture: name one, such as -o profile.html."};
}

// `labels`: each is "coroutine", "request", "trace", "phase", "fiber", "plugin" or an expression.
Result<LabelChoice> labels_of(const std::vector<std::string>& labels) {
  LabelChoice choice;
  for (const std::string& label : labels) {
    std::optional<LabelExpression> expression = label_expression(label);
    if (!expression) {
      (label == request_label  ? choice.requests
       : label == trace_label  ? choice.traces
       : label == phase_label  ? choice.phases
       : label == fiber_label  ? choice.fibers
       : label == plugin_label ? choice.plugins
                               : choice.coroutines) = true;
      continue;
    }
    // What --by or another label is called.
    static const std::set<std::string_view> taken = {
        request_label,   slow_label,   trace_label, phase_label, fiber_label,
        coroutine_label, plugin_label, "samples",   "time",      "run"};
    const auto has_name = [&](const LabelExpression& each) { return each.name == expression->name; };
    if (taken.contains(expression->name) || std::ranges::any_of(choice.expressions, has_name))
      return Error{Cause::usage, fmt::format("--label {}: there is another one of this name.", label)};
    if (choice.expressions.size() == most_label_expressions)
      return Error{Cause::usage, fmt::format("--label: {} expressions at most.", most_label_expressions)};
    choice.expressions.push_back(std::move(*expression));
  }
  return choice;
}

}  // namespace

Result<int> record(const RecordOptions& options, const Alongside* alongside) {
  const Result<const Format*> format = choose_format(options.format, options.output, nullptr);
  if (!format) return format.error();
  if (const Result<void> shown = check_opens(options, *format); !shown) return shown.error();
  SamplerOptions sampler_options;
  sampler_options.merging = {options.shape.mode == Mode::native, options.traces};
  sampler_options.idle = options.idle;
  Result<LabelChoice> labels = labels_of(options.labels);
  if (labels && options.slower) labels->requests = true;
  if (!labels) return labels.error();
  sampler_options.labels = std::move(*labels);
  const KernelAccess kernel = options.kernel ? ask_for_kernel(options.rate, options.idle) : KernelAccess{};
  for (const std::string& note : kernel.notes) say("luaspy: {}\n", note);
  sampler_options.kernel = kernel.symbols;
  std::optional<OutputFile> output;
  const auto open_output = [&](const std::string& program, pid_t pid) -> Result<void> {
    Result<OutputFile> file = OutputFile::open(
        {name_with_time(options.output, pid), options.format, default_stem(program, pid)});
    if (!file) return file.error();
    output = std::move(*file);
    return {};
  };
  // Nothing is started before it is known that the output can be written.
  const auto before_start = [&](pid_t pid) { return open_output(options.target.command.front(), pid); };
  const TargetOptions target = with_output_kept(options.target, options.output);
  Result<ProcessTree> opened = ProcessTree::open(target, sampler_options, options.subprocesses, before_start);
  if (!opened) {
    if (output) output->discard();
    return opened.error();
  }
  ProcessTree& tree = *opened;
  if (!tree.target().launched() && options.shape.mode != Mode::native) {
    if (const Result<void> lua = tree.check_lua(); !lua) return lua.error();
  }
  Process& process = tree.target().target().process();
  const auto open_next = [&] { return open_output(program_of(process.pid()), process.pid()); };
  if (!output) {
    if (const Result<void> file = open_next(); !file) return file.error();
  }
  system::hold_end_at_once(output->is_file());  // a pipe's reader may block for ever
  system::watch_signals();
  if (system::is_terminal(2)) say("luaspy: recording process {}; Ctrl-C stops and writes the profile\n", process.pid());

  const Part part = record_parts(options, alongside, tree, output, kernel, open_next);
  const Error cause = part.refused ? explain_no_stop(process.pid()) : Error{};
  if (part.counts.target_ended) say("{}", survivors_text(tree));
  system::hold_end_at_once(false);
  const int status = await_command(tree, options.end_command);
  if (!part.ran) return part.ran.error();
  if (!part.written) return part.written.error();
  const Error& why = part.refused ? cause : part.nothing;
  if (!part.shows() && status == 0) return why;
  // If the command has failed, that says more.
  if (part.refused) fmt::print(stderr, "  refused: {}\n", why.text);
  else if (!part.shows()) say("luaspy: {}\n", why.text);
  return options.opens && part.is_written ? show(output->path()) : status;
}

}  // namespace luaspy
