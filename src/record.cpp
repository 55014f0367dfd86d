#include "record.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <utility>

#include "output/format.h"
#include "pacer.h"
#include "session.h"
#include "stop_budget.h"
#include "stop_times.h"

namespace luaspy {
namespace {

using Clock = system::Clock;

std::int64_t to_ns(Clock::duration duration) { return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count(); }

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

struct Recording {
  Profile profile;
  StopTimes stops;
  std::int64_t ticks = 0;
  bool target_ended = false;
};

// Lines that nobody asked for would only make stacks more.
void prepare(Sample& sample, const RecordOptions& options) {
  if (!options.lines) {
    for (Frame& frame : sample.stack) frame.line = 0, frame.line_is_near = false;
  }
  if (options.vmstate) sample.stack.insert(sample.stack.begin(), {Frame::Kind::marker, fmt::format("[{}]", name(sample.vm_state)), {}, 0, 0});
}

// A look at every thread. `time` and `weight` (ns): since the recording's start, since the tick before.
void tick(Session& session, const RecordOptions& options, std::int64_t time, std::int64_t weight, StopBudget& budget, Recording& recording) {
  ++recording.ticks;
  for (const auto& thread : session.target().process().threads()) {
    std::optional<Sample> sample = session.sampler().sample(*thread);
    if (!sample) {
      recording.profile.add_idle();
      continue;
    }
    if (sample->loss == Loss::none && !sample->again) prepare(*sample, options);
    if (sample->stopped_ns != 0) {
      recording.stops.add(sample->stopped_ns);
      budget.add(thread->tid(), sample->stopped_ns);
    }
    recording.profile.add({thread->tid(), thread->name()}, weight, *sample);
  }
  budget.end_tick(time);
}

void run(Session& session, const RecordOptions& options, Recording& recording) {
  Pacer pacer(options.rate);
  StopBudget budget(options.max_stopped / 100);
  const Clock::time_point start = Clock::now();
  Clock::time_point last = start, asked = start;
  std::int64_t ended_threads = 0;
  constexpr std::chrono::seconds ask_again(1);
  while (system::end_requested() == 0) {
    const std::optional<Pacer::Missed> missed = pacer.wait();
    const Clock::time_point now = Clock::now();
    if (options.duration && now - start >= std::chrono::duration<double>(*options.duration)) break;
    if (missed) {
      recording.profile.add_loss(Loss::late, missed->late);
      recording.profile.add_loss(Loss::skipped, missed->skipped);
      tick(session, options, to_ns(now - start), to_ns(now - std::exchange(last, now)), budget, recording);
      pacer.pause_until(start + std::chrono::nanoseconds(budget.paid_at()));
    }
    // Asking costs more than a look at a thread; a thread that has ended says it, too.
    const bool ask = session.target().process().threads().empty() || recording.profile.losses(Loss::ended) != ended_threads || now - asked > ask_again;
    if (ask) {
      ended_threads = recording.profile.losses(Loss::ended);
      asked = now;
      recording.target_ended = session.ended();
      if (recording.target_ended) break;
    }
    session.sampler().settle();
  }
  recording.profile.duration_ns = to_ns(Clock::now() - start);
  recording.profile.rate = options.rate;
}

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

void print_summary(const Recording& recording, const RecordOptions& options, Sampler& sampler, const Output& output, bool written) {
  const Profile& profile = recording.profile;
  const double seconds = static_cast<double>(profile.duration_ns) / 1e9;
  const double ticks_a_second = seconds > 0 ? static_cast<double>(recording.ticks) / seconds : 0;
  std::string luas;
  for (const std::string& row : sampler.reader().lua().rows()) luas += (luas.empty() ? "" : ", ") + row;
  if (profile.samples() != 0) print_hottest(profile);
  fmt::print(stderr, "luaspy: {:.1f} s, {} samples of {} thread{}, {:.1f} ticks a second{}{}\n", seconds, profile.samples(), profile.threads().size(),
             profile.threads().size() == 1 ? "" : "s", ticks_a_second, luas.empty() ? "" : "; ", luas);
  if (recording.stops.count() != 0) {
    fmt::print(stderr, "  target stood still: {:.0f} µs median, {:.0f} µs at the 99th percentile, {:.1f} ms in all, {:.2f} % of the time\n",
               static_cast<double>(recording.stops.quantile_ns(0.5)) / 1e3, static_cast<double>(recording.stops.quantile_ns(0.99)) / 1e3,
               static_cast<double>(recording.stops.total_ns()) / 1e6, 100 * static_cast<double>(recording.stops.total_ns()) / static_cast<double>(profile.duration_ns));
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
  if (recording.target_ended) fmt::print(stderr, "  the target has ended\n");
  if (written && !output.to_stdout()) fmt::print(stderr, "  written: {}\n  next: {}\n", output.path(), output.format().next_step);
}

}  // namespace

Result<int> record(const RecordOptions& options) {
  SamplerOptions sampler_options;
  sampler_options.merging = {options.mode, options.traces};
  sampler_options.idle = options.idle;
  sampler_options.near = true;
  Result<std::unique_ptr<Session>> opened = Session::open(options.target, sampler_options);
  if (!opened) return opened.error();
  Session& session = **opened;
  if (!session.launched() && options.mode != Mode::native) {
    if (const Result<void> lua = session.check_lua(); !lua) return lua.error();
  }
  Result<Output> output = Output::open(options, session.target().process().pid());
  if (!output) return output.error();
  system::watch_signals();
  if (system::is_terminal(2)) fmt::print(stderr, "luaspy: recording process {}; Ctrl-C ends it and writes\n", session.target().process().pid());

  Recording recording{Profile(output->format().needs_order), {}};
  recording.profile.target = session.target().process().command();
  run(session, options, recording);
  recording.profile.settle_names();
  const Result<void> written = output->write(recording.profile, {options.lines, options.threads});
  print_summary(recording, options, session.sampler(), *output, written.has_value());
  const int status = session.wait_for_exit();
  if (!written) return written.error();
  if (recording.profile.samples() == 0 && !session.launched()) {
    return Error{Cause::no_samples, "No samples: the target was idle all the time. --idle samples sleeping threads too."};
  }
  return status;
}

}  // namespace luaspy
