#include "dump/movement.h"

#include <algorithm>

namespace luaspy {
namespace {

constexpr double hanging_share = 0.01, working_share = 0.5;

// Whether both are in the same function, at any line. Names are not compared: a function's name
// depends on its caller.
bool same_function(const Frame& a, const Frame& b) {
  if (a.kind != b.kind || a.file != b.file) return false;
  return a.kind == Frame::Kind::lua ? a.line_defined == b.line_defined && a.prototype == b.prototype : a.name == b.name;
}

const ThreadLook* find(const ProcessLook& look, int tid) {
  const auto found = std::ranges::find(look.threads, tid, &ThreadLook::tid);
  return found != look.threads.end() && found->sample.loss == Loss::none ? &*found : nullptr;
}

Stack common_start(const Stack& a, const Stack& b) {
  const auto [end, unused] = std::ranges::mismatch(a, b, same_function);
  return {a.begin(), end};
}

Movement movement(const std::vector<const ThreadLook*>& looks, double seconds) {
  const ThreadLook &first = *looks.front(), &last = *looks.back();
  Movement result;
  result.tid = last.tid, result.name = last.name;
  const auto share = [&](std::int64_t from, std::int64_t to) {
    return seconds > 0 ? static_cast<double>(to - from) / 1e9 / seconds : 0;
  };
  result.cpu = share(first.times.on_cpu, last.times.on_cpu);
  result.waited = share(first.times.waited_for_cpu, last.times.waited_for_cpu);
  result.inside = last.stack;
  for (const ThreadLook* look : looks) result.inside = common_start(result.inside, look->stack);
  const bool same_place = std::ranges::all_of(looks, [&](const ThreadLook* look) { return look->stack == last.stack; });
  if (result.cpu + result.waited < hanging_share && same_place) result.kind = Movement::Kind::stands_still;
  if (result.cpu + result.waited >= working_share) result.kind = Movement::Kind::works;

  if (const Frame* const lua = innermost(result.inside, Frame::Kind::lua)) {
    const auto place = static_cast<std::size_t>(lua - result.inside.data());
    for (const ThreadLook* look : looks) result.lines.push_back(look->stack[place].line);
    std::ranges::sort(result.lines);
    result.lines.erase(std::unique(result.lines.begin(), result.lines.end()), result.lines.end());
  }
  for (Frame& frame : result.inside) frame.line = 0, frame.line_is_near = false;
  return result;
}

}  // namespace

const Frame* innermost(const Stack& stack, Frame::Kind kind) {
  const auto found = std::find_if(stack.rbegin(), stack.rend(), [&](const Frame& frame) { return frame.kind == kind; });
  return found == stack.rend() ? nullptr : &*found;
}

std::vector<Movement> movements(const std::vector<ProcessLook>& looks) {
  const double seconds = looks.back().time - looks.front().time;
  std::vector<Movement> result;
  for (const ThreadLook& thread : looks.back().threads) {
    std::vector<const ThreadLook*> of_thread;
    for (const ProcessLook& look : looks) of_thread.push_back(find(look, thread.tid));
    if (std::ranges::find(of_thread, nullptr) == of_thread.end()) result.push_back(movement(of_thread, seconds));
  }
  return result;
}

}  // namespace luaspy
