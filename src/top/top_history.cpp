#include "top/top_history.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <utility>

#include "input/raw_reader.h"
#include "output/output_file.h"

namespace luaspy {
namespace {

std::int64_t now_s() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
}

}  // namespace

TopHistory::TopHistory(About about, Limits limits) : about_(std::move(about)), limits_(limits) { open(); }

void TopHistory::open() {
  raw_.reset();  // before what it refers to
  stacks_ = std::make_unique<StackTable>();
  threads_.clear();
  heaps_ = {}, states_ = 0;
  bytes_ = std::make_unique<CarriedRecording>();
  stream_ = std::make_unique<std::ostream>(bytes_.get());
  raw_ = std::make_unique<RawWriter>(*stacks_, threads_, about_.unit, *stream_);
}

void TopHistory::know(const Profile::Thread& thread) {
  const auto [place, added] = thread_index_.try_emplace(thread.key());
  if (!added) return;
  place->second.index = static_cast<std::uint32_t>(threads_.size());
  threads_.push_back(thread);
}

void TopHistory::add(const ThreadKey& of, const Tick& tick, const Sample& sample) {
  const bool is_full = bytes_->bytes().size() > limits_.bytes || stacks_->nodes().size() > limits_.stacks ||
                       threads_.size() > limits_.threads;
  if (is_full) {
    const Profile::Thread thread = threads_[thread_index_.at(of).index];
    begin_anew();
    know(thread);
  }
  Known& known = thread_index_.at(of);
  known.seen_ns = tick.at_ns;
  const Tick since_begun = {tick.at_ns - duration_before_, tick.weight};
  add(since_begun, known, sample);
  for (const HeapReading& heap : sample.heaps) {
    if (const std::optional<HeapChange> change = heaps_.take(threads_[known.index].pid, heap))
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

void TopHistory::add(const Tick& since_begun, Known& known, const Sample& sample) {
  Sample lost;
  lost.loss = sample.again && !known.has_last ? Loss::left_out : sample.loss;
  lost.stopped_ns = sample.stopped_ns;
  if (lost.loss != Loss::none) return raw_->sample(known.index, since_begun, lost, 0);
  known.has_last = true;
  const Sample& facts = known.last.take(sample, *stacks_);
  raw_->sample(known.index, since_begun, facts, known.last.stack());
}

void TopHistory::advance(std::int64_t ticks, std::int64_t duration_ns, const CpuUse& cpu) {
  ticks_ = ticks, duration_ns_ = duration_ns;
  about_.ticks = ticks - ticks_before_;
  about_.duration_ns = duration_ns - duration_before_;
  // It is the share since the start.
  about_.cpu.system_share = duration_before_ == 0 ? cpu.system_share : -1;
}

void TopHistory::tell_target(const About& target) {
  about_.luas = target.luas;
  about_.lua_mapped = target.lua_mapped;
  about_.command = target.command;
  about_.executable = target.executable;
}

// Samples of a thread that sleeps on only say so (Sample::again), so they need the last one. A thread
// that was not seen lately has probably ended.
void TopHistory::begin_anew() {
  constexpr std::int64_t lately_ns = 10'000'000'000;
  const std::unique_ptr<StackTable> before = std::move(stacks_);
  const std::vector<Profile::Thread> threads = threads_;
  open();
  for (auto& [key, known] : std::exchange(thread_index_, {})) {
    if (!known.has_last || known.seen_ns < duration_ns_ - lately_ns || threads_.size() >= limits_.threads / 2) continue;
    Sample again;
    again.again = true;
    Sample last = known.last.take(again, *before);
    if (last.state == Sample::State::running) continue;
    for (const StackTable::FrameId frame : before->stack(known.last.stack()))
      last.stack.push_back(before->frames()[frame]);
    know(threads[known.index]);
    Known& kept = thread_index_.at(key);
    kept.last.take(last, *stacks_);
    kept.has_last = true, kept.seen_ns = known.seen_ns;
  }
  ticks_before_ = ticks_, duration_before_ = duration_ns_;
  about_.started_s = now_s();
  advance(ticks_, duration_ns_, CpuUse());
}

std::string TopHistory::recording() {
  About until_now = about_;
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
  Shape shape = {.mode = mode};
  shape.whole = (*format)->carries_recording;
  Result<Profile> profile = read_raw(in, shape, {}, (*format)->needs_order());
  if (!profile) return profile.error();
  if (profile->samples() == 0) return Error{Cause::no_samples, "There is no sample yet."};
  // A pipe would wait for its reader, and the keys with it.
  std::error_code unused;
  if (std::filesystem::exists(path, unused) && !std::filesystem::is_regular_file(path, unused))
    return Error{Cause::usage, "That is not a file."};
  Result<OutputFile> output = OutputFile::open({path, std::string((*format)->name), ""});
  if (!output) return output.error();
  profile->settle_names();
  if (output->is_raw()) output->stream() << recording;
  const Result<void> written = output->is_raw() ? output->finish()
                                                : output->write(*profile, {.mode = mode, .recording = recording});
  if (!written) return written.error();
  return output->next_step();
}

}  // namespace luaspy
