#include "top/top_history.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <utility>

#include "input/raw_reader.h"
#include "output/output_file.h"
#include "output/write_options.h"

namespace luaspy {
namespace {

std::int64_t now_s() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
}

}  // namespace

TopHistory::TopHistory(const EventTables& tables, Metadata about, std::size_t most_bytes)
    : tables_(tables), about_(std::move(about)), most_bytes_(most_bytes) {
  open();
}

void TopHistory::open() {
  raw_.reset();  // before what it refers to
  heaps_ = {}, states_ = 0;
  bytes_ = std::make_unique<CarriedRecording>();
  stream_ = std::make_unique<std::ostream>(bytes_.get());
  raw_ = std::make_unique<RawWriter>(tables_, about_.unit, *stream_);
}

void TopHistory::add(ThreadId thread, const Tick& tick, const Sample& sample) {
  if (bytes_->bytes().size() > most_bytes_) begin_anew();
  const Tick since_begun = {tick.at_ns - duration_before_, tick.weight};
  if (sample.loss == Loss::none) raw_->sample(thread, since_begun, sample);
  else raw_->lost(thread, since_begun, sample.loss, sample.stopped_ns);
  for (const HeapReading& heap : sample.heaps) {
    if (const std::optional<HeapChange> change = heaps_.observe(tables_.threads[thread].pid, heap))
      add_heap(since_begun, *change);
  }
}

void TopHistory::add_heap(const Tick& since_begun, const HeapChange& change) {
  if (change.state == states_) raw_->state(heaps_.states()[states_++]);
  raw_->heap(since_begun, change);
}

void TopHistory::end(int pid, const Tick& tick) {
  for (const HeapChange& change : heaps_.end(pid)) add_heap({tick.at_ns - duration_before_, tick.weight}, change);
}

void TopHistory::advance(std::int64_t ticks, std::int64_t duration_ns, const CpuUse& cpu) {
  ticks_ = ticks, duration_ns_ = duration_ns;
  about_.ticks = ticks - ticks_before_;
  about_.duration_ns = duration_ns - duration_before_;
  // It is the share since the start.
  about_.cpu.system_share = duration_before_ == 0 ? cpu.system_share : -1;
}

void TopHistory::set_metadata(const Metadata& target) {
  about_.luas = target.luas;
  about_.lua_mapped = target.lua_mapped;
  about_.command = target.command;
  about_.executable = target.executable;
}

void TopHistory::begin_anew() {
  open();
  ticks_before_ = ticks_, duration_before_ = duration_ns_;
  about_.started_s = now_s();
  advance(ticks_, duration_ns_, CpuUse());
}

std::string TopHistory::recording() {
  Metadata until_now = about_;
  until_now.complete = true;
  raw_->about(until_now);
  raw_->flush();
  return std::string(bytes_->bytes());
}

Result<std::string> write_recording(const std::string& recording, Mode mode, const std::string& path) {
  if (path == "-") return Error{Cause::usage, "The screen is on standard output: name a file."};
  const Result<const Format*> format = choose_format("", path, &formats().front());
  if (!format) return format.error();
  std::istringstream in(recording);
  const ViewOptions shape = shape_for(**format, {.mode = mode});
  Result<Profile> profile = read_raw(in, shape, {}, (*format)->needs_order());
  if (!profile) return profile.error();
  if (profile->samples() == 0) return Error{Cause::no_samples, "There is no sample yet."};
  // A pipe would wait for its reader, and the keys with it.
  std::error_code unused;
  if (std::filesystem::exists(path, unused) && !std::filesystem::is_regular_file(path, unused))
    return Error{Cause::usage, "That is not a file."};
  Result<OutputFile> output = OutputFile::open({path, std::string((*format)->name), ""});
  if (!output) return output.error();
  profile->resolve_names();
  if (output->is_raw()) output->stream() << recording;
  const Result<void> written = output->is_raw() ? output->finish()
                                                : output->write(*profile, {.mode = mode, .recording = recording});
  if (!written) return written.error();
  return output->next_step();
}

}  // namespace luaspy
