#include "profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace luaspy {

Profile::Amount& Profile::Amount::operator+=(const Amount& other) {
  samples += other.samples, weight += other.weight, squares += other.squares;
  return *this;
}

void Profile::add_lost(Loss loss, std::int64_t stopped_ns) {
  if (stopped_ns != 0) stops_.add(stopped_ns);
  add_loss(loss);
}

void Profile::add(std::uint32_t thread, const Tick& tick, const Sample& facts, StackId stack) {
  if (facts.stopped_ns != 0) stops_.add(facts.stopped_ns);
  quality_ += facts.quality;
  if (facts.state == Sample::State::waiting) waiting_ += tick.samples;
  vm_states_[static_cast<std::size_t>(facts.vm_state)] += tick.samples;
  samples_ += tick.samples;
  Track& track = tracks_[thread];
  track.quality += facts.quality;
  track.vm_states[static_cast<std::size_t>(facts.vm_state)] += tick.samples;
  Situation situation = {facts, stack};
  if (!keeps_cpus_) situation.cpu = -1;
  if (track.amount == nullptr || situations_[track.at.situation] != situation) {
    track.at = {thread, intern(situation)};
    track.amount = &counts_[track.at];
  }
  const auto weight = static_cast<double>(tick.weight) * charged_;
  *track.amount += {tick.samples, std::llround(weight), weight * weight / static_cast<double>(tick.samples)};
  last_ = track.at;
  if (!keeps_order_) return;
  // The duration of a sample of time is its weight; other samples are moments.
  const std::int64_t lasted_ns = about.unit == Unit::nanoseconds ? tick.weight : 0;
  track.timeline.add(track.at.situation, tick.at_ns - lasted_ns, tick.at_ns, tick.weight, tick.samples);
}

void Profile::leave_out_sleepers() {
  std::vector<bool> sleeps(threads_.size()), runs(threads_.size());
  for (const auto& [at, amount] : counts_) {
    const bool is_asleep = situations_[at.situation].state == Sample::State::sleeping;
    (is_asleep ? sleeps : runs)[at.thread] = true;
  }
  if (std::ranges::find(runs, true) == runs.end()) return;
  for (std::uint32_t thread = 0; thread < runs.size(); ++thread) {
    if (sleeps[thread] && !runs[thread]) leave_out(thread);
  }
}

void Profile::leave_out(std::uint32_t thread) {
  std::int64_t samples = 0;
  const auto first = counts_.lower_bound({thread, 0});
  auto end = first;
  for (; end != counts_.end() && end->first.thread == thread; ++end) samples += end->second.samples;
  counts_.erase(first, end);
  quality_ -= tracks_[thread].quality;
  for (std::size_t i = 0; i < vm_state_count; ++i) vm_states_[i] -= tracks_[thread].vm_states[i];
  tracks_[thread] = Track();
  samples_ -= samples, idle_ += samples;
  ++sleepers_.threads, sleepers_.ticks += samples;
}

void Profile::charge_pauses() {
  if (about.unit != Unit::nanoseconds) return;
  const double whole = static_cast<double>(about.duration_ns), looked = static_cast<double>(about.looked_ns());
  const double charged = looked > 0 ? std::max(whole / looked, 1.0) : 1, factor = charged / charged_;
  constexpr double most = 1e18;  // ns: a file may say anything
  if (factor == 1 || static_cast<double>(weight()) * factor > most) return;
  charged_ = charged;
  for (auto& [at, amount] : counts_) {
    amount.weight = std::llround(static_cast<double>(amount.weight) * factor);
    amount.squares *= factor * factor;
  }
}

// A stack is made after the one that it continues.
void Profile::add_all(const Profile& other, const std::optional<Frame>& root) {
  ++added_;
  ById<FrameId, FrameId> frames;
  for (const Frame& frame : other.stacks_.frames()) frames.add(stacks_.intern(frame));
  const StackId base = root ? stacks_.intern({empty_stack, stacks_.intern(*root)}) : empty_stack;
  ById<StackId, StackId> stacks;
  for (const StackTable::Node& node : other.stacks_.nodes())
    stacks.add(stacks.size() == 0 ? base : stacks_.intern({stacks[node.outer], frames[node.frame]}));
  // Two recordings of one thread: the processes of one machine are told apart by their numbers and starts.
  using Known = std::tuple<int, int, std::int64_t, std::string>;
  std::map<Known, std::uint64_t> programs;
  for (const ThreadInfo& thread : threads_)
    programs.emplace(Known(thread.pid, thread.tid, thread.started, thread.process), thread.program);
  std::vector<std::uint32_t> threads;
  for (ThreadInfo thread : other.threads_) {
    constexpr int beside_programs = 32;  // of which no recording has so many
    thread.pid = thread.pid != 0 ? thread.pid : static_cast<int>(other.about.pid);
    if (thread.process.empty()) thread.process = other.about.command;
    const auto known = programs.find(Known(thread.pid, thread.tid, thread.started, thread.process));
    thread.program = thread.started != 0 && known != programs.end() ? known->second
                                                                    : thread.program + (added_ << beside_programs);
    threads.push_back(index_of(thread));
  }
  for (const auto& [at, amount] : other.counts_) {
    Situation situation = other.situations_[at.situation];
    situation.stack = stacks[situation.stack];
    situation.labels = labels_.intern(other.labels_[situation.labels]);
    counts_[{threads[at.thread], intern(situation)}] += amount;
  }
  suspended.looks += other.suspended.looks, suspended.looked_ns += other.suspended.looked_ns;
  suspended.unread += other.suspended.unread, suspended.most = std::max(suspended.most, other.suspended.most);
  for (const auto& [place, extremes] : other.suspended.places) {
    SuspendedCounts::Extremes& of = suspended
                                        .places[{stacks[place.stack], labels_.intern(other.labels_[place.labels])}];
    of.most = std::max(of.most, extremes.most), of.longest_ns = std::max(of.longest_ns, extremes.longest_ns);
  }
  samples_ += other.samples_;
  for (std::size_t i = 0; i < loss_count; ++i) losses_[i] += other.losses_[i];
  for (std::size_t i = 0; i < vm_state_count; ++i) vm_states_[i] += other.vm_states_[i];
  sleepers_.threads += other.sleepers_.threads, sleepers_.ticks += other.sleepers_.ticks;
  idle_ += other.idle_, waiting_ += other.waiting_, quality_ += other.quality_, stops_ += other.stops_;
  for (const auto& [file, source] : other.sources) sources.emplace(file, source);
  add_metadata(other.about);
}

void Profile::add_metadata(const Metadata& other) {
  if (added_ == 1) {
    about = other;
    return;
  }
  if (about.command != other.command) about.command = fmt::format("{} recordings", added_);
  if (about.executable != other.executable) about.executable.clear();
  if (about.pid != other.pid) about.pid = 0;
  if (about.mode != other.mode) about.mode = "several";
  for (const std::string& lua : other.luas) {
    if (std::ranges::find(about.luas, lua) == about.luas.end()) about.luas.push_back(lua);
  }
  about.lua_mapped |= other.lua_mapped;
  about.rate = std::max(about.rate, other.rate);
  about.started_s = std::min(about.started_s, other.started_s);
  about.complete &= other.complete;
  if (about.kind != other.kind) about.kind = "several kinds of files";
  about.timed &= other.timed;
  if (about.torn.empty()) about.torn = other.torn;
  about.sampled_ns = about.looked_ns() + other.looked_ns();
  about.duration_ns += other.duration_ns;
  about.ticks += other.ticks;
  about.cpu.lua_ns += other.cpu.lua_ns;
  about.cpu.other_ns += other.cpu.other_ns;
  about.cpu.unknown_ns += other.cpu.unknown_ns;
  about.cpu.system_share = std::max(about.cpu.system_share, other.cpu.system_share);
  about.sampled_cpu_ns += other.sampled_cpu_ns;
  about.allocations += other.allocations;
}

std::uint32_t Profile::index_of(const ThreadInfo& thread) {
  const auto [place, added] = thread_index_.emplace(thread.key(), static_cast<std::uint32_t>(threads_.size()));
  if (added) threads_.push_back(thread), tracks_.emplace_back();
  return place->second;
}

Profile::SituationId Profile::intern(const Situation& situation) {
  const auto [place, added] = situation_index_.emplace(situation, static_cast<SituationId>(situations_.size()));
  if (added) situations_.push_back(situation);
  return place->second;
}

std::map<StackId, Profile::Amount> Profile::stack_counts(std::optional<std::uint32_t> thread) const {
  std::map<StackId, Amount> counts;
  for (const auto& [at, amount] : counts_) {
    if (thread && at.thread != *thread) continue;
    counts[situations_[at.situation].stack] += amount;
  }
  return counts;
}

std::int64_t Profile::weight() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& count) { return sum + count.second.weight; });
}

std::int64_t Profile::total_losses() const { return std::accumulate(losses_.begin(), losses_.end(), std::int64_t{0}); }

void Profile::resolve_names() {
  using Function = std::tuple<std::string, int, std::uint32_t>;  // file, line_defined and prototype
  struct Names {
    std::map<std::string, std::int64_t> given;  // by the source and by callers; with their points
    std::map<std::string, int> shown;           // with their twins; the own ones first, then all
    std::string given_name;                     // the one for all frames without their own
  };
  const auto may_be_given_a_name = [](const Frame& frame) {
    return frame.kind == Frame::Kind::lua && frame.line_defined != 0;
  };
  const auto function_of = [](const Frame& frame) { return Function(frame.file, frame.line_defined, frame.prototype); };
  const StackTable::Frames& frames = stacks_.frames();
  ById<FrameId, std::int64_t> seen(frames.size());
  for (const auto& [id, amount] : stack_counts()) {
    for (const FrameId frame : stack(id)) seen[frame] += amount.samples;
  }
  std::map<Function, Names> functions;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const FrameId id{static_cast<std::uint32_t>(i)};
    const Frame& frame = frames[id];
    if (!may_be_given_a_name(frame)) continue;
    Names& names = functions[function_of(frame)];
    // A real name replaces "function" and the generic names of iterators and metamethods.
    if (frame.own_name) names.shown.try_emplace(frame.name);
    else names.given[frame.name] += frame.name == "function" ? 0 : frame.name == "for iterator" ? 1 : 2 * seen[id];
  }
  std::map<std::tuple<std::string, int, std::string>, int> same;  // by file, line and name: how many functions
  for (auto& [function, names] : functions) {
    const auto& [file, line, prototype] = function;
    if (names.shown.size() == 1) names.given_name = names.shown.begin()->first;
    else if (!names.given.empty())
      names.given_name = std::ranges::max_element(names.given, {}, [](const auto& each) { return each.second; })->first;
    if (!names.given.empty()) names.shown.try_emplace(names.given_name);
    for (auto& [name, twin] : names.shown) {
      const int count = ++same[{file, line, name}];
      twin = count > 1 ? count : 0;
    }
  }
  settled_ = frames;
  for (Frame& frame : settled_) {
    if (!may_be_given_a_name(frame)) continue;
    const Names& names = functions.at(function_of(frame));
    if (!frame.own_name) frame.name = names.given_name;
    frame.twin = names.shown.at(frame.name);
  }
}

// One that was recorded for a moment may have ended by itself, before anybody can look at it again.
DoubtFacts Profile::doubt_facts() const {
  constexpr std::int64_t moment_ns = 2'000'000'000;
  const std::int64_t pid = about.duration_ns < moment_ns ? 0 : about.pid;
  return {
      pid,       about.lua_mapped || !about.luas.empty(), samples_, quality_, losses_, about.cpu, about.sampled_cpu_ns,
      about.rate};
}

}  // namespace luaspy
