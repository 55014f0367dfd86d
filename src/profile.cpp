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

void Profile::add(const Thread& thread, std::int64_t weight_ns, const Sample& sample) {
  if (sample.loss != Loss::none) {
    add_loss(sample.loss);
    return;
  }
  const std::uint32_t index = index_of(thread);
  Track& track = tracks_[index];
  if (!sample.again) {
    track.vm_state = sample.vm_state;
    track.quality = sample.quality;
    intern(sample.stack, track.last);
  }
  quality_ += track.quality;
  ++vm_states_[static_cast<std::size_t>(track.vm_state)];
  ++samples_;
  const StackId stack = track.last.empty() ? 0 : track.last.back();
  ++counts_[{index, stack}];
  if (keeps_order_) track.timeline.add(stack, weight_ns);
}

std::uint32_t Profile::index_of(const Thread& thread) {
  const auto [place, added] = thread_index_.emplace(thread.tid, static_cast<std::uint32_t>(threads_.size()));
  if (added) threads_.push_back(thread), tracks_.emplace_back();
  return place->second;
}

std::vector<Profile::FrameId> Profile::stack(StackId id) const {
  std::vector<FrameId> frames;
  for (; id != 0; id = nodes_[id].outer) frames.push_back(nodes_[id].frame);
  std::ranges::reverse(frames);
  return frames;
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

// `last` is brought from the stack before to this one. Comparing frames takes less time than looking them up.
void Profile::intern(const Stack& stack, std::vector<StackId>& last) {
  std::size_t depth = 0;
  while (depth < last.size() && depth < stack.size() && frames_[nodes_[last[depth]].frame] == stack[depth]) ++depth;
  last.resize(depth);
  for (; depth < stack.size(); ++depth) {
    const Node node = {last.empty() ? 0 : last.back(), intern(stack[depth])};
    const auto [place, added] = node_index_.emplace(std::uint64_t{node.outer} << 32 | node.frame, static_cast<StackId>(nodes_.size()));
    if (added) nodes_.push_back(node);
    last.push_back(place->second);
  }
}

void Profile::settle_names() {
  using Function = std::tuple<Frame::Kind, std::string, int>;
  const auto is_named_by_callers = [](const Frame& frame) { return frame.kind == Frame::Kind::lua && frame.line_defined != 0; };
  const auto function_of = [](const Frame& frame) { return Function(frame.kind, frame.file, frame.line_defined); };
  std::vector<std::int64_t> seen(frames_.size());
  for (const auto& [thread_stack, samples] : counts_) {
    for (const FrameId id : stack(thread_stack.stack)) seen[id] += samples;
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
  for (const auto& [thread_stack, samples] : counts_) {
    counted.clear();
    const auto frames = stack(thread_stack.stack);
    for (const FrameId id : frames) {
      if (counted.insert(by_frame[id]).second) by_frame[id]->total += samples;
    }
    if (!frames.empty()) by_frame[frames.back()]->own += samples;
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
