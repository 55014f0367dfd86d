#include "record.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <utility>

#include "output/format.h"
#include "sampling_loop.h"

namespace luaspy {
namespace {

// Where the profile goes. Opened before the recording: a path that cannot be written is told at once.
class Output {
 public:
  static Result<Output> open(const RecordOptions& options, pid_t pid) {
    Output output;
    output.format_ = find_format(options.format);
    if (output.format_ == nullptr) output.format_ = format_of_file(options.output);
    if (output.format_ == nullptr) output.format_ = &formats().front();
    output.path_ = options.output;
    if (output.path_.empty()) output.path_ = fmt::format("luaspy-{}{}", pid, output.format_->extension);
    if (output.path_ == "-") return output;
    output.file_.open(output.path_, std::ios::binary | std::ios::trunc);
    if (!output.file_) return Error{Cause::output, fmt::format("Cannot write {}.", output.path_)};
    return output;
  }

  Result<void> write(const Profile& profile, const WriteOptions& options) {
    std::ostream& out = to_stdout() ? std::cout : file_;
    format_->write(profile, options, out);
    out.flush();
    if (!out) return Error{Cause::output, fmt::format("Cannot write all of {}: no space, or closed by its reader.", path_)};
    return {};
  }
  bool to_stdout() const { return path_ == "-"; }
  const std::string& path() const { return path_; }
  const Format& format() const { return *format_; }

 private:
  const Format* format_ = nullptr;
  std::string path_;
  std::ofstream file_;
};

// A profile of what the loop finds.
class Recording : public SampleSink {
 public:
  Recording(const RecordOptions& options, bool keeps_order) : profile(keeps_order), options_(options) {}

  void add(Session& of, const Thread& thread, std::int64_t weight_ns, Sample& sample) override {
    if (sample.loss == Loss::none && !sample.again) prepare(of, sample);
    profile.add({thread.tid(), thread.name()}, weight_ns, sample);
  }
  void add_idle(Session&, const Thread&, std::int64_t) override { profile.add_idle(); }
  void add_loss(Loss loss, std::int64_t count) override { profile.add_loss(loss, count); }

  Profile profile;
  LoopCounts counts;

 private:
  // Lines that nobody asked for would only make stacks more.
  void prepare(Session& of, Sample& sample) const {
    if (!options_.lines) {
      for (Frame& frame : sample.stack) frame.line = 0, frame.line_is_near = false;
    }
    const auto add_root = [&](std::string text) { sample.stack.insert(sample.stack.begin(), {Frame::Kind::marker, std::move(text), {}, 0, 0}); };
    if (options_.vmstate) add_root(fmt::format("[{}]", name(sample.vm_state)));
    if (options_.subprocesses) add_root(fmt::format("[process {} {}]", of.target().process().pid(), of.target().process().command()));
  }

  const RecordOptions& options_;
};

void print_quality(const Quality& quality) {
  const auto share = [&](std::int64_t part, std::int64_t of) { return of == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(of); };
  fmt::print(stderr, "  stacks: {:.2f} % with Lua; native part complete {:.2f} %", share(quality.with_lua, quality.stacks), share(quality.native_complete, quality.stacks));
  const auto part = [&](std::string_view what, std::int64_t count) {
    if (count != 0) fmt::print(stderr, "; {} {:.2f} %", what, share(count, quality.with_lua));
  };
  part("not joined", quality.not_joined);
  part("Lua part cut short", quality.lua_broken);
  part("unusable", quality.lua_unusable);
  part("innermost call half built and dropped", quality.half_built);
  part("other calls dropped", quality.calls_dropped);
  part("Lua stack being moved", quality.relocated);
  part("native frames of the VM and Lua calls that entered one differ in number", quality.fresh_mismatch);
  fmt::print(stderr, "\n");
}

// Where the VM was, most first. Of use for LuaJIT; PUC's are told by the hottest functions as well.
void print_vm_states(const Profile& profile) {
  std::vector<std::pair<std::int64_t, VmState>> states;
  for (std::size_t i = 0; i < vm_state_count; ++i) {
    const auto state = static_cast<VmState>(i);
    if (profile.samples_in(state) != 0) states.emplace_back(profile.samples_in(state), state);
  }
  std::sort(states.begin(), states.end(), std::greater());
  std::string text;
  for (const auto& [count, state] : states)
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", name(state), 100 * static_cast<double>(count) / static_cast<double>(profile.samples()));
  fmt::print(stderr, "  in: {}\n", text);
}

void print_hottest(const Profile& profile) {
  constexpr std::size_t most = 10;
  const auto samples = static_cast<double>(profile.samples());
  fmt::print(stderr, "\n   %Own  %Total  Function\n");
  std::size_t shown = 0;
  for (const Profile::Hot& hot : profile.hottest()) {
    if (hot.own == 0 || shown++ == most) break;
    fmt::print(stderr, "  {:5.1f}   {:5.1f}  {}\n", 100 * static_cast<double>(hot.own) / samples, 100 * static_cast<double>(hot.total) / samples,
               describe(hot.function, false));
  }
  fmt::print(stderr, "\n");
}

void print_summary(const Recording& recording, const RecordOptions& options, const Family& family, const Output& output, bool written) {
  const Profile& profile = recording.profile;
  const double seconds = static_cast<double>(profile.duration_ns) / 1e9;
  const double ticks_a_second = seconds > 0 ? static_cast<double>(recording.counts.ticks) / seconds : 0;
  const std::string luas = fmt::format("{}", fmt::join(family.rows(), ", "));
  if (profile.samples() != 0) print_hottest(profile);
  fmt::print(stderr, "luaspy: {:.1f} s, {} samples of {} thread{}, {:.1f} ticks a second{}{}\n", seconds, profile.samples(), profile.threads().size(),
             profile.threads().size() == 1 ? "" : "s", ticks_a_second, luas.empty() ? "" : "; ", luas);
  if (recording.counts.stops.count() != 0) {
    fmt::print(stderr, "  target stood still: {:.0f} µs median, {:.0f} µs at the 99th percentile, {:.1f} ms in all, {:.2f} % of the time\n",
               static_cast<double>(recording.counts.stops.quantile_ns(0.5)) / 1e3, static_cast<double>(recording.counts.stops.quantile_ns(0.99)) / 1e3,
               static_cast<double>(recording.counts.stops.total_ns()) / 1e6, 100 * static_cast<double>(recording.counts.stops.total_ns()) / static_cast<double>(profile.duration_ns));
  }
  if (profile.losses(Loss::skipped) != 0) {
    fmt::print(stderr, "  rate lowered to {:.{}f} Hz so that no thread stands still for more than {:g} % of the time\n", ticks_a_second, ticks_a_second < 10 ? 1 : 0, options.max_stopped);
  }
  if (profile.quality().stacks != 0) print_vm_states(profile), print_quality(profile.quality());
  std::string losses;
  for (std::size_t i = 1; i < loss_count; ++i) {
    const auto loss = static_cast<Loss>(i);
    if (profile.losses(loss) != 0) losses += fmt::format("{}{} {}", losses.empty() ? "" : ", ", profile.losses(loss), name(loss));
  }
  fmt::print(stderr, "  lost: {}; thread asleep at {} ticks\n", losses.empty() ? "nothing" : losses, profile.idle());
  if (recording.counts.target_ended) fmt::print(stderr, "  the target has ended\n");
  if (written && !output.to_stdout()) fmt::print(stderr, "  written: {}\n  next: {}\n", output.path(), output.format().next_step);
}

}  // namespace

Result<int> record(const RecordOptions& options) {
  SamplerOptions sampler_options;
  sampler_options.merging = {options.mode, options.traces};
  sampler_options.idle = options.idle;
  sampler_options.near = std::make_shared<NearThread>();
  Result<Family> opened = Family::open(options.target, sampler_options, options.subprocesses);
  if (!opened) return opened.error();
  Family& family = *opened;
  if (!family.target().launched() && options.mode != Mode::native) {
    if (const Result<void> lua = family.check_lua(); !lua) return lua.error();
  }
  Process& process = family.target().target().process();
  Result<Output> output = Output::open(options, process.pid());
  if (!output) return output.error();
  system::watch_signals();
  if (system::is_terminal(2)) fmt::print(stderr, "luaspy: recording process {}; Ctrl-C ends it and writes\n", process.pid());

  Recording recording(options, output->format().needs_order);
  recording.profile.target = process.command();
  run_loop(family, {options.rate, options.duration, options.max_stopped}, recording, recording.counts);
  recording.profile.duration_ns = recording.counts.duration_ns;
  recording.profile.rate = options.rate;
  recording.profile.settle_names();
  const Result<void> written = output->write(recording.profile, {options.lines, options.threads});
  print_summary(recording, options, family, *output, written.has_value());
  const int status = family.wait_for_exit();
  if (!written) return written.error();
  if (recording.profile.samples() == 0 && !family.target().launched()) {
    return Error{Cause::no_samples, "No samples: the target was idle all the time. --idle samples sleeping threads too."};
  }
  return status;
}

}  // namespace luaspy
