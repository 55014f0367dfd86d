#include "profile/stack_view.h"

#include <fmt/format.h>

namespace luaspy {
namespace {

std::optional<Pattern> compiled(const std::string& pattern) {
  if (pattern.empty()) return {};
  return Pattern(pattern);
}

}  // namespace

StackView::StackView(const ViewOptions& shape, const StackTable& source, StackTable& into)
    : shape_(shape), only_(compiled(shape.only)), ignore_(compiled(shape.ignore)), source_(source), into_(into) {}

std::optional<StackId> StackView::shaped(StackId stack, VmState vm_state, const ThreadInfo& thread) {
  if (only_ && !has_match(*only_, has_only_, stack)) return {};
  if (ignore_ && has_match(*ignore_, has_ignored_, stack)) return {};
  Root& root = root_of(vm_state, thread);
  StackId shaped_stack = shaped(stack, root);
  if (shaped_stack == root.stack && stack != empty_stack) {
    if (nothing_ == not_shaped) nothing_ = into_.intern(nothing_shown(shape_.mode));
    shaped_stack = into_.intern({shaped_stack, nothing_});
  }
  if (!shape_.gc || vm_state != VmState::collecting) return shaped_stack;
  if (collector_ == not_shaped) collector_ = into_.intern(state_marker(vm_state));
  return into_.intern({shaped_stack, collector_});
}

StackView::Root& StackView::root_of(VmState vm_state, const ThreadInfo& thread) {
  const auto [place,
              added] = roots_.try_emplace({shape_.processes ? thread.pid : 0, shape_.processes ? thread.program : 0,
                                           shape_.vmstate ? vm_state : VmState::none});
  Root& root = place->second;
  if (!added) return root;
  if (shape_.processes)
    root.stack = into_.intern(
        {root.stack, into_.intern(marker(fmt::format("[process {} {}]", thread.pid, thread.process)))});
  if (shape_.vmstate) root.stack = into_.intern({root.stack, into_.intern(state_marker(vm_state))});
  root.shaped.add(root.stack);
  return root;
}

// Computes the values from the nearest known outer stack inwards.
template <typename Value, typename Next>
Value StackView::climb(ById<StackId, Value>& known, Value unknown, StackId stack, Next next) {
  known.resize(source_.nodes().size(), unknown);
  chain_.clear();
  for (; known[stack] == unknown; stack = source_.nodes()[stack].outer) chain_.push_back(stack);
  Value value = known[stack];
  for (; !chain_.empty(); chain_.pop_back()) {
    value = next(value, source_.nodes()[chain_.back()].frame);
    known[chain_.back()] = value;
  }
  return value;
}

StackId StackView::shaped(StackId stack, Root& root) {
  return climb(root.shaped, not_yet, stack, [this](StackId outer, FrameId frame) {
    const FrameId shown = shaped_frame(frame);
    return shown != not_shown ? into_.intern({outer, shown}) : outer;
  });
}

FrameId StackView::shaped_frame(FrameId frame) {
  frames_.resize(source_.frames().size(), not_shaped);
  FrameId& known = frames_[frame];
  if (known != not_shaped) return known;
  Frame shown = source_.frames()[frame];
  if (!shape_.whole && !shows(shape_.mode, shown)) return known = not_shown;
  if (!shape_.lines && !shape_.whole) shown.line = 0, shown.line_is_near = false;
  return known = into_.intern(shown);
}

bool StackView::has_match(const Pattern& pattern, ById<StackId, std::int8_t>& known, StackId stack) {
  return climb(known, std::int8_t{-1}, stack, [&](std::int8_t outer, FrameId id) {
           const Frame& frame = source_.frames()[id];
           return static_cast<std::int8_t>(
               outer != 0 || (shows(shape_.mode, frame) && pattern.found_in(describe(frame, frame.line != 0))));
         }) != 0;
}

}  // namespace luaspy
