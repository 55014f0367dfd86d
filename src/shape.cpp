#include "shape.h"

#include <fmt/format.h>

namespace luaspy {
namespace {

std::optional<std::regex> compiled(const std::string& pattern) {
  if (pattern.empty()) return {};
  return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
}

Frame marker(std::string text) { return {Frame::Kind::marker, std::move(text), {}, 0, 0}; }

}  // namespace

std::optional<std::string> pattern_error(const std::string& pattern) {
  try {
    compiled(pattern);
  } catch (const std::regex_error& error) {
    return fmt::format("{} is no regular expression: {}", pattern, error.what());
  }
  return {};
}

Shaper::Shaper(const Shape& shape, const StackTable& source, StackTable& into)
    : shape_(shape), only_(compiled(shape.only)), ignore_(compiled(shape.ignore)), source_(source), into_(into) {}

std::optional<Shaper::StackId> Shaper::shaped(StackId stack, VmState vm_state, const Profile::Thread& thread) {
  if (only_ && !has_match(only_, has_only_, stack)) return {};
  if (ignore_ && has_match(ignore_, has_ignored_, stack)) return {};
  const StackId shaped_stack = shaped(stack, root_of(vm_state, thread));
  if (!shape_.gc || vm_state != VmState::collecting) return shaped_stack;
  return into_.intern({shaped_stack, into_.intern(marker("[garbage collector]"))});
}

Shaper::Root& Shaper::root_of(VmState vm_state, const Profile::Thread& thread) {
  const auto [place, added] = roots_.try_emplace({shape_.processes ? thread.pid : 0, shape_.vmstate ? vm_state : VmState::none});
  Root& root = place->second;
  if (!added) return root;
  if (shape_.processes) root.stack = into_.intern({root.stack, into_.intern(marker(fmt::format("[process {} {}]", thread.pid, thread.process)))});
  if (shape_.vmstate) root.stack = into_.intern({root.stack, into_.intern(marker(fmt::format("[{}]", name(vm_state))))});
  root.shaped.push_back(root.stack);
  return root;
}

// From the nearest outer stack that is known, inwards.
Shaper::StackId Shaper::shaped(StackId stack, Root& root) {
  root.shaped.resize(source_.nodes().size(), not_yet);
  chain_.clear();
  for (; root.shaped[stack] == not_yet; stack = source_.nodes()[stack].outer) chain_.push_back(stack);
  StackId outer = root.shaped[stack];
  for (; !chain_.empty(); chain_.pop_back()) {
    outer = into_.intern({outer, shaped_frame(source_.nodes()[chain_.back()].frame)});
    root.shaped[chain_.back()] = outer;
  }
  return outer;
}

StackTable::FrameId Shaper::shaped_frame(StackTable::FrameId frame) {
  frames_.resize(source_.frames().size(), not_yet);
  StackTable::FrameId& known = frames_[frame];
  if (known != not_yet) return known;
  Frame shown = source_.frames()[frame];
  if (!shape_.lines) shown.line = 0, shown.line_is_near = false;
  return known = into_.intern(shown);
}

bool Shaper::has_match(const std::optional<std::regex>& pattern, std::vector<std::int8_t>& known, StackId stack) const {
  known.resize(source_.nodes().size(), -1);
  known[0] = 0;
  std::vector<StackId> chain;
  for (; known[stack] < 0; stack = source_.nodes()[stack].outer) chain.push_back(stack);
  std::int8_t matches = known[stack];
  for (; !chain.empty(); chain.pop_back()) {
    const Frame& frame = source_.frames()[source_.nodes()[chain.back()].frame];
    if (matches == 0 && std::regex_search(describe(frame, frame.line != 0), *pattern)) matches = 1;
    known[chain.back()] = matches;
  }
  return matches != 0;
}

}  // namespace luaspy
