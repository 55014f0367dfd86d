#include "alloc/alloc.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <ostream>
#include <utility>
#include <vector>

#include "alloc/alloc_text.h"
#include "alloc/allocation_trace.h"
#include "alloc/fold_internals.h"
#include "alloc/live_recording.h"
#include "alloc/memprof.h"
#include "allocations/allocation_loop.h"
#include "allocations/allocation_text.h"
#include "base/say.h"
#include "output/output_file.h"
#include "output/print_text.h"
#include "output/write_options.h"
#include "profile/amount_text.h"
#include "recording/await_command.h"
#include "recording/carried_recording.h"
#include "recording/metadata_of_target.h"
#include "recording/recording.h"
#include "sampling/process_tree.h"
#include "system/progress.h"
#include "system/signals.h"

namespace luaspy {
namespace {

// Two recordings of the same samples, in bytes and in objects; one of them goes to the file.
class Recorder : public AllocationSink {
 public:
  Recorder(const AllocOptions& options, ProcessTree& tree, std::optional<OutputFile>& output)
      : options_(options),
        tree_(tree),
        output_(output),
        bytes_(tree.tables(), shape_of(Unit::bytes), false),
        objects_(tree.tables(), shape_of(Unit::objects), false),
        live_(tree.tables(), shape_of(options.unit)),
        about_(about_recording(tree, options.shape.mode, 0, options.max_cost)) {
    update_metadata();
    if (has_heap()) live_.keep_heaps();
    if (!output_ || is_memprof() || has_heap()) return;
    Recording& written = options.live ? live_written() : all_written();
    if (output_->is_raw()) written.write_raw(output_->stream_behind());
    else if (output_->format().carries_recording) written.write_raw(carried_);
  }

  void add(ThreadId thread, const Tick& tick, const AllocationSample& allocation, Sample& sample) override {
    sample.heaps.clear();  // at the beginning of an allocation
    StackTable& stacks = tree_.tables().stacks;
    Stack stack = stacks.frames_of(sample.stack);
    const std::string location = is_memprof() ? Memprof::location(stack) : std::string();
    if (!options_.internals) fold_internals(stack);
    if (options_.types) stack.push_back(marker(name(allocation.use)));
    sample.stack = stacks.intern(stack);
    const std::int64_t bytes = std::llround(allocation.bytes), objects = std::llround(allocation.calls);
    const std::int64_t samples = bytes_.profile().samples();
    bytes_.add(thread, {tick.at_ns, bytes}, sample);
    objects_.add(thread, {tick.at_ns, objects}, sample);
    if (bytes_.profile().samples() == samples) return;  // left out by --only or --ignore
    if (is_memprof()) memprof_.add(location, allocation);
    if (options_.live)
      live_.add(tree_.tables().threads[thread].pid, tick.at_ns, allocation,
                std::as_const(*this).all_written().profile(), number_of(location));
    types_.add(allocation);
    squares_ += static_cast<double>(bytes) * static_cast<double>(bytes);
  }

  void look_at(Session& of, Address G, std::uint64_t identity, std::int64_t at_ns, const HeapReader& reader) override {
    if (options_.live) live_.look(of.target().process().pid(), G, identity, at_ns, reader);
  }

  void add_loss(Loss loss) override {
    bytes_.add_loss(loss, 1);
    objects_.add_loss(loss, 1);
  }

  void look(const AllocationCounts& counts) override {
    about_.duration_ns = counts.duration_ns;
    about_.ticks = counts.bursts;
    if (counts.duration_ns >= program_ns_) {
      describe_program(tree_, about_);
      describe_luas(tree_, about_);
      program_ns_ += 200'000'000;
    }
    if (progress_.is_due())
      progress_.show(fmt::format("{:.0f} s, {}", static_cast<double>(counts.duration_ns) / 1e9,
                                 count_of(counts.samples, "sample")));
  }

  Result<void> finish(bool writes) {
    progress_.clear();
    about_.complete = true;
    Result<void> settled;
    if (options_.live && writes) settled = live_.finish(tree_, all_written().profile(), about_.duration_ns);
    update_metadata();
    for (Recording* const recording : {&bytes_, &objects_, &live_.bytes(), &live_.objects()})
      recording->resolve_names();
    if (!settled) return settled;
    if (!output_ || !writes) return {};
    if (is_memprof()) output_->stream() << memprof_text();
    if (has_heap()) {
      if (Result<void> written = write_heap(); !written) return written;
    }
    if (is_memprof() || has_heap() || output_->is_raw()) return output_->finish();
    WriteOptions options;
    options.lines = options_.shape.lines;
    options.threads = options_.threads;
    options.mode = options_.shape.mode;
    options.recording = carried_bytes_.bytes();
    // pprof shows all of them, each by its name.
    const bool has_values = output_->format().name == "pprof";
    const std::vector<SampleValues> values = has_values ? all_values() : std::vector<SampleValues>();
    options.values = values;
    return output_->write(options_.live && !has_values ? live_written().profile() : all_written().profile(), options);
  }

  std::string text(const AllocationCounts& counts) const {
    std::string text = alloc_text(counts, types_, bytes_.profile(), objects_.profile(),
                                  uncertainty(bytes_.profile(), squares_), options_.shape.mode);
    if (options_.live) text.insert(0, live_text(live_, options_.shape.mode));
    return text;
  }

 private:
  ViewOptions shape_of(Unit unit) const {
    ViewOptions shape = options_.shape;
    shape.whole = output_ && unit == options_.unit && output_->format().carries_recording;
    return shape;
  }
  std::size_t number_of(const std::string& location) {
    return locations_.emplace(location, locations_.size()).first->second;
  }
  std::string memprof_text() {
    std::vector<const std::string*> locations(locations_.size());
    for (const auto& [location, number] : locations_) locations[number] = &location;
    for (const LiveRecording::InUse& each : live_.in_use())
      memprof_.add_alive(*locations[each.location],
                         {static_cast<double>(each.objects), static_cast<double>(each.bytes)});
    for (const auto& [location, objects] : live_.gone()) memprof_.add_alive(*locations[location], {0, 0, objects});
    return memprof_.text();
  }
  Result<void> write_heap() {
    std::vector<const HeapAnalysis*> known;
    for (const LiveRecording::Heap& heap : live_.heaps()) {
      for (const auto& state : heap.states) {
        if (state->is_known()) known.push_back(state.get());
      }
    }
    const HeapsnapshotAllocations allocations = allocation_trace(bytes_.profile(), objects_.profile(),
                                                                 options_.shape.lines, live_.in_use());
    const Result<HeapsnapshotSizes> sizes = write_heapsnapshot(known, {}, output_->stream(), allocations);
    if (!sizes) return sizes.error();
    say("{}", to_text(*sizes));
    return {};
  }
  bool is_memprof() const { return output_ && &output_->format() == &memprof_format; }
  bool has_heap() const { return output_ && &output_->format() == &allocation_trace_format; }
  // What is written to a file, of all and of what is in use at the end.
  const Recording& all_written() const { return options_.unit == Unit::objects ? objects_ : bytes_; }
  Recording& all_written() { return options_.unit == Unit::objects ? objects_ : bytes_; }
  Recording& live_written() { return options_.unit == Unit::objects ? live_.objects() : live_.bytes(); }
  void update_metadata() {
    about_.unit = Unit::objects;
    for (Recording* const recording : {&objects_, &live_.objects()}) recording->set_metadata(about_);
    about_.unit = Unit::bytes;
    for (Recording* const recording : {&bytes_, &live_.bytes()}) recording->set_metadata(about_);
  }

  // As Go names them (runtime/pprof). Both recordings have the same samples in the same order, so
  // their situations have the same numbers.
  std::vector<SampleValues> all_values() const {
    SampleValues objects = {"alloc_objects", "count", {}}, bytes = {"alloc_space", "bytes", {}};
    for (const auto& [of, amount] : objects_.profile().counts()) objects.values[of] = amount.weight;
    for (const auto& [of, amount] : bytes_.profile().counts()) bytes.values[of] = amount.weight;
    if (!options_.live) return {std::move(objects), std::move(bytes)};
    SampleValues live_objects = {"inuse_objects", "count", {}}, live_bytes = {"inuse_space", "bytes", {}};
    for (const LiveRecording::InUse& each : live_.in_use()) {
      live_objects.values[each.of] += each.objects;
      live_bytes.values[each.of] += each.bytes;
    }
    return {std::move(objects), std::move(bytes), std::move(live_objects), std::move(live_bytes)};
  }

  const AllocOptions& options_;
  ProcessTree& tree_;
  std::optional<OutputFile>& output_;
  CarriedRecording carried_bytes_;
  std::ostream carried_{&carried_bytes_};
  Recording bytes_, objects_;
  LiveRecording live_;
  AllocationTypes types_;
  Memprof memprof_;
  std::map<std::string, std::size_t> locations_;  // Memprof::location(); each has a number
  double squares_ = 0;                            // of the samples' weights in bytes
  system::ProgressLine progress_;
  Metadata about_;
  std::int64_t program_ns_ = 0;
};

// nullptr: one of formats(), or none.
const Format* own_format(const AllocOptions& options) {
  for (const Format* const format : {&memprof_format, &allocation_trace_format}) {
    const bool has_ending = options.output.ends_with(format->extension) ||
                            (!format->also.empty() && options.output.ends_with(format->also));
    if (options.format == format->name || (options.format.empty() && has_ending)) return format;
  }
  return nullptr;
}

Result<std::optional<OutputFile>> open_output(const AllocOptions& options) {
  std::optional<OutputFile> output;
  if (options.output.empty()) return output;
  const Format* const own = own_format(options);
  if (own == &allocation_trace_format && options.subprocesses)
    return Error{Cause::usage, fmt::format("{} is of one process: leave out --subprocesses.", own->name)};
  Result<OutputFile> file = own ? OutputFile::open(options.output, *own)
                                : OutputFile::open({options.output, options.format, ""});
  if (!file) return file.error();
  if (std::optional<Error> refused = refusal(file->format(), options.unit)) {
    file->discard();
    return *refused;
  }
  output.emplace(std::move(*file));
  return output;
}

}  // namespace

std::vector<std::string_view> alloc_format_names() { return {memprof_format.name, allocation_trace_format.name}; }

Result<int> alloc(const AllocOptions& asked) {
  AllocOptions options = asked;
  if (own_format(options) == &allocation_trace_format) options.live = true;
  Result<std::optional<OutputFile>> opened = open_output(options);
  if (!opened) return opened.error();
  std::optional<OutputFile>& output = *opened;
  const auto run = [&]() -> Result<int> {
    Result<ProcessTree> tree = ProcessTree::open(with_output_kept(options.target, options.output), {},
                                                 options.subprocesses);
    if (!tree) return tree.error();
    if (!tree->target().launched()) {
      if (const Result<void> lua = tree->check_lua(); !lua) return lua.error();
    }
    system::watch_signals();
    Recorder recorder(options, *tree, output);
    AllocationCounts counts;
    const Result<void> sampled = run_allocation_loop(*tree, {options.duration, options.max_cost}, recorder, counts);
    const bool shows = sampled && counts.samples != 0;
    const Result<void> written = recorder.finish(shows);
    Result<void> printed;
    if (shows && output) say("{}", recorder.text(counts));
    else if (shows) printed = print_text(recorder.text(counts));
    if (shows && output && written && !output->to_stdout())
      say("  written: {}\n  next: {}\n", output->path(), output->next_step());
    const int status = await_command(*tree, options.end_command);
    if (!sampled) return sampled.error();
    if (!written) return written.error();
    if (!printed) return printed.error();
    if (!shows && status == 0) return Error{Cause::no_samples, "No samples: the program was not seen to allocate."};
    if (!shows && output) output->discard();
    return status;
  };
  Result<int> status = run();
  if (!status && output) output->discard();
  return status;
}

}  // namespace luaspy
