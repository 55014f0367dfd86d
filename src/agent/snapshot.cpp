#include "agent/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "input/raw_reader.h"
#include "output/output_file.h"
#include "output/raw.h"

namespace luaspy {
namespace {

constexpr std::string_view prefix = "luaspy-";

// The recording of one program, while it is written.
class OneFile {
 public:
  OneFile(OutputFile file, const KeptPart& first)
      : file_(std::move(file)),
        writer_(std::make_unique<RawWriter>(tables_, Unit::nanoseconds, file_.stream())),
        began_(first.began),
        started_s_(first.started_s) {}

  // From now on, what is added is of this part, whose numbers `tables` knows.
  void begin(const KeptPart& part, const EventTables& tables) {
    offset_ns_ = system::to_ns(part.began - began_);
    from_ = &tables;
    stacks_.clear(), threads_.clear();
  }
  void sample(ThreadId thread, const Tick& tick, const Sample& sample) {
    Sample here = sample;
    here.stack = of_stack(sample.stack);
    writer_->sample(of_thread(thread), at(tick), here);
  }
  void lost(ThreadId thread, const Tick& tick, Loss loss, std::int64_t stopped_ns) {
    writer_->lost(of_thread(thread), at(tick), loss, stopped_ns);
  }
  void heap(const Tick& tick, const HeapChanges::State& state, HeapChange change) {
    if (numbers_.size() == HeapChanges::most_states && !numbers_.contains(state.G)) return;
    const auto [place, added] = numbers_.try_emplace(state.G, static_cast<std::uint32_t>(numbers_.size()));
    if (added) writer_->state(state);
    change.state = place->second;
    writer_->heap(at(tick), change);
  }
  void end(const KeptPart& part, const KeptPart::Of& program) {
    writer_->idle(program.idle);
    if (program.waiting != 0) writer_->waiting(program.waiting);
    about_ = program.about;
    about_.ticks = ticks_ += part.ticks;
    about_.duration_ns = system::to_ns(part.ended - began_);
  }
  Result<std::string> finish() {
    about_.started_s = started_s_;
    about_.complete = true;
    writer_->about(about_);
    writer_->flush();
    if (const Result<void> written = file_.finish(); !written) {
      file_.discard();
      return written.error();
    }
    return file_.path();
  }

 private:
  Tick at(const Tick& tick) const { return {tick.at_ns + offset_ns_, tick.weight, tick.samples}; }
  StackId of_stack(StackId stack) {
    const auto [place, added] = stacks_.try_emplace(stack);
    if (added) place->second = tables_.stacks.intern(from_->stacks.frames_of(stack));
    return place->second;
  }
  ThreadId of_thread(ThreadId thread) {
    const auto [place, added] = threads_.try_emplace(thread);
    if (added) place->second = tables_.threads.intern(from_->threads[thread]);
    return place->second;
  }

  OutputFile file_;
  EventTables tables_;
  std::unique_ptr<RawWriter> writer_;
  system::Clock::time_point began_;
  std::int64_t started_s_, offset_ns_ = 0, ticks_ = 0;
  Metadata about_;
  const EventTables* from_ = nullptr;
  std::unordered_map<StackId, StackId> stacks_;
  std::unordered_map<ThreadId, ThreadId> threads_;
  std::map<Address, std::uint32_t> numbers_;
};

// The files of one snapshot: of the programs that have samples. What is read of a part goes to the file of its program.
class SnapshotFiles : public RawEvents {
 public:
  SnapshotFiles(const KeptParts& parts, int pid, const SnapshotFolder& options) : pid_(pid), options_(options) {
    for (const auto& part : parts) {
      for (const auto& [key, program] : part->programs) {
        if (program.samples != 0 && (pid == 0 || key.first == pid)) wanted_.insert(key);
      }
    }
    for (const auto& part : parts) add(*part);
  }

  Result<std::vector<std::string>> finish() {
    std::vector<std::string> paths;
    for (auto& [key, file] : files_) {
      const Result<std::string> path = file->finish();
      if (path) paths.push_back(*path);
      else if (!failed_) failed_ = path.error();
    }
    if (failed_) return *failed_;
    if (!paths.empty()) return paths;
    if (pid_ == 0) return Error{Cause::no_samples, "No samples are kept yet."};
    return Error{Cause::no_samples, fmt::format("No samples are kept of process {}.", pid_)};
  }

  void begin(const EventTables& tables, Unit) override {
    tables_ = &tables;
    for (const auto& [key, file] : files_) file->begin(*part_, tables);
  }
  void sample(ThreadId thread, const Tick& tick, const Sample& sample) override {
    if (OneFile* const file = file_of(thread)) file->sample(thread, tick, sample);
  }
  void lost(ThreadId thread, const Tick& tick, Loss loss, std::int64_t stopped_ns) override {
    if (OneFile* const file = file_of(thread)) file->lost(thread, tick, loss, stopped_ns);
  }
  void state(const HeapChanges::State& state) override { states_.push_back(state); }
  // A heap is of a process: of the program of it that the part has last.
  void heap(const Tick& tick, const HeapChange& change) override {
    const HeapChanges::State& state = states_[change.state];
    OneFile* file = nullptr;
    for (auto each = part_->programs.lower_bound({state.pid, 0});
         each != part_->programs.end() && each->first.first == state.pid; ++each)
      file = file_of(each->first);
    if (file != nullptr) file->heap(tick, state, change);
  }
  void allocation(ThreadId, std::int64_t, std::int64_t, std::int64_t, const Sample&) override {}
  void loss(Loss, std::int64_t) override {}
  void mark(const Mark&) override {}
  void suspended(const SuspendedLook&) override {}
  void idle(std::int64_t) override {}
  void waiting(std::int64_t) override {}
  void end(const Profile&) override {}

 private:
  void add(const KeptPart& part) {
    part_ = &part;
    states_.clear();
    for (const auto& [key, program] : part.programs) {
      if (!failed_ && wanted_.contains(key) && file_of(key) == nullptr) open(key, program);
    }
    if (failed_) return;
    std::istringstream in(part.raw);
    ViewOptions all;
    all.mode = Mode::all;
    (void)read_raw(in, all, {}, false, {}, this);  // luaspy has written it
    for (const auto& [key, program] : part.programs) {
      if (OneFile* const file = file_of(key)) file->end(part, program);
    }
  }

  OneFile* file_of(ThreadId thread) {
    const ThreadInfo& info = tables_->threads[thread];
    return file_of({info.pid, info.program});
  }
  // nullptr: it has none.
  OneFile* file_of(const KeptPart::Key& key) {
    const auto file = files_.find(key);
    return file != files_.end() ? file->second.get() : nullptr;
  }
  void open(const KeptPart::Key& key, const KeptPart::Of& program) {
    Result<OutputFile> opened = open(key.first, program.about);
    if (opened) files_[key] = std::make_unique<OneFile>(std::move(*opened), *part_);
    else failed_ = opened.error();
  }

  Result<OutputFile> open(int pid, const Metadata& about) const {
    std::error_code error;
    std::size_t there = 0;
    for (const auto& entry : std::filesystem::directory_iterator(options_.folder, error))
      there += entry.path().filename().string().starts_with(prefix) ? 1 : 0;
    if (error)
      return Error{Cause::output, fmt::format("Cannot read the folder {}: {}.", options_.folder, error.message())};
    if (there >= options_.most_files)
      return Error{Cause::output, fmt::format("{} has {} snapshots already: remove some.", options_.folder, there)};
    const Format& raw = *find_format("raw");
    constexpr std::size_t longest_name = 64;
    const std::string name = base_name(about.executable).substr(0, longest_name);
    const std::string stem = default_stem(name, pid) + name_with_time("-%t", pid);
    return OutputFile::open(unused_name(options_.folder + '/' + stem, raw.extension), raw);
  }

  const int pid_;
  const SnapshotFolder& options_;
  std::set<KeptPart::Key> wanted_;
  const KeptPart* part_ = nullptr;
  const EventTables* tables_ = nullptr;
  std::vector<HeapChanges::State> states_;  // of the part
  std::map<KeptPart::Key, std::unique_ptr<OneFile>> files_;
  std::optional<Error> failed_;
};

}  // namespace

Result<std::vector<std::string>> write_snapshot(const KeptParts& parts, int pid, const SnapshotFolder& options) {
  return SnapshotFiles(parts, pid, options).finish();
}

}  // namespace luaspy
