#include "profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <unordered_set>

namespace luaspy {
namespace {

void mix(std::size_t& hash, std::size_t value) { hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2); }

std::size_t hash_of(const Frame& frame) {
  std::size_t hash = std::hash<std::string>()(frame.name);
  mix(hash, std::hash<std::string>()(frame.file));
  mix(hash, static_cast<std::size_t>(frame.line_defined) << 32 | static_cast<std::uint32_t>(frame.line));
  mix(hash, static_cast<std::size_t>(frame.kind) << 1 | static_cast<std::size_t>(frame.line_is_near));
  return hash;
}

}  // namespace

Quality& Quality::operator+=(const Quality& other) {
  stacks += other.stacks, with_lua += other.with_lua, native_complete += other.native_complete, not_joined += other.not_joined;
  lua_broken += other.lua_broken, lua_unusable += other.lua_unusable, half_built += other.half_built, calls_dropped += other.calls_dropped;
  relocated += other.relocated, fresh_mismatch += other.fresh_mismatch;
  return *this;
}

void Profile::add(const Thread& thread, std::int64_t time_ns, std::int64_t weight_ns, const Sample& sample) {
  if (sample.loss != Loss::none) {
    add_loss(sample.loss);
    return;
  }
  quality_ += sample.quality;
  ++vm_states_[static_cast<std::size_t>(sample.vm_state)];
  auto known = std::ranges::find(threads_, thread.tid, &Thread::tid);
  if (known == threads_.end()) known = threads_.insert(threads_.end(), thread);
  entries_.push_back({time_ns, weight_ns, static_cast<std::uint32_t>(known - threads_.begin()), intern(sample.stack)});
}

std::span<const Profile::FrameId> Profile::stack(StackId id) const {
  const std::size_t end = id + 1 < stack_starts_.size() ? stack_starts_[id + 1] : stack_frames_.size();
  return std::span(stack_frames_).subspan(stack_starts_[id], end - stack_starts_[id]);
}

std::int64_t Profile::total_losses() const { return std::accumulate(losses_.begin(), losses_.end(), std::int64_t{0}); }

Profile::FrameId Profile::intern(const Frame& frame) {
  const std::size_t hash = hash_of(frame);
  const auto [first, last] = frame_index_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (frames_[known->second] == frame) return known->second;
  }
  const auto id = static_cast<FrameId>(frames_.size());
  frames_.push_back(frame);
  frame_index_.emplace(hash, id);
  return id;
}

Profile::StackId Profile::intern(const Stack& stack) {
  const std::size_t start = stack_frames_.size();
  std::size_t hash = stack.size();
  for (const Frame& frame : stack) {
    stack_frames_.push_back(intern(frame));
    mix(hash, stack_frames_.back());
  }
  const auto fresh = std::span(stack_frames_).subspan(start);
  const auto [first, last] = stack_index_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    const bool is_last = known->second + 1 == stack_starts_.size();
    const std::size_t end = is_last ? start : stack_starts_[known->second + 1];
    const auto frames = std::span(stack_frames_).subspan(stack_starts_[known->second], end - stack_starts_[known->second]);
    if (!std::ranges::equal(frames, fresh)) continue;
    stack_frames_.resize(start);
    return known->second;
  }
  const auto id = static_cast<StackId>(stack_starts_.size());
  stack_starts_.push_back(start);
  stack_index_.emplace(hash, id);
  return id;
}

void Profile::settle_names() {
  using Function = std::tuple<Frame::Kind, std::string, int>;
  const auto is_named_by_callers = [](const Frame& frame) { return frame.kind == Frame::Kind::lua && frame.line_defined != 0; };
  const auto function_of = [](const Frame& frame) { return Function(frame.kind, frame.file, frame.line_defined); };
  std::vector<std::int64_t> seen(frames_.size());
  for (const Entry& entry : entries_) {
    for (const FrameId id : stack(entry.stack)) ++seen[id];
  }
  std::map<Function, std::map<std::string, std::int64_t>> names;
  for (FrameId id = 0; id < frames_.size(); ++id) {
    const Frame& frame = frames_[id];
    // "function" and iterators' and metamethods' generic names give way to a real one.
    if (is_named_by_callers(frame)) names[function_of(frame)][frame.name] += frame.name == "function" ? 0 : frame.name == "for iterator" ? 1 : 2 * seen[id];
  }
  for (Frame& frame : frames_) {
    if (!is_named_by_callers(frame)) continue;
    const auto& candidates = names.at(function_of(frame));
    frame.name = std::ranges::max_element(candidates, {}, [](const auto& candidate) { return candidate.second; })->first;
  }
}

std::vector<Profile::Hot> Profile::hottest() const {
  std::map<std::string, Hot> functions;
  std::vector<Hot*> by_frame(frames_.size());
  for (FrameId id = 0; id < frames_.size(); ++id) {
    Hot& hot = functions[describe(frames_[id], false)];
    hot.function = frames_[id];
    hot.function.line = 0;
    hot.function.line_is_near = false;
    by_frame[id] = &hot;
  }
  std::unordered_set<const Hot*> counted;
  for (const Entry& entry : entries_) {
    counted.clear();
    const auto frames = stack(entry.stack);
    for (const FrameId id : frames) {
      if (counted.insert(by_frame[id]).second) ++by_frame[id]->total;
    }
    if (!frames.empty()) ++by_frame[frames.back()]->own;
  }
  std::vector<Hot> hottest;
  for (const auto& [text, hot] : functions) hottest.push_back(hot);
  std::ranges::stable_sort(hottest, [](const Hot& a, const Hot& b) { return std::tie(a.own, a.total) > std::tie(b.own, b.total); });
  return hottest;
}

std::string describe(const Frame& frame, bool lines) {
  switch (frame.kind) {
    case Frame::Kind::lua: {
      const int line = lines ? frame.line : frame.line_defined;
      if (line <= 0) return fmt::format("{} ({})", frame.name, frame.file);
      return fmt::format("{} ({}:{}{})", frame.name, frame.file, lines && frame.line_is_near ? "~" : "", line);
    }
    case Frame::Kind::c: return frame.name + " [C]";
    case Frame::Kind::native:
      // A name that was made of the module says it already.
      return frame.file.empty() || frame.name == frame.file || frame.name.starts_with(frame.file + '+') ? frame.name : fmt::format("{} ({})", frame.name, frame.file);
    case Frame::Kind::marker: break;
  }
  return frame.name;
}

}  // namespace luaspy
