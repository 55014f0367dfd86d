#include "dump_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "profile.h"

namespace luaspy {
namespace {

using Out = std::back_insert_iterator<std::string>;

constexpr std::string_view state_name(Sample::State state) { return state == Sample::State::running ? "running" : "sleeping"; }

void print_thread(Out out, const ThreadLook& thread) {
  const VmState vm_state = thread.sample.vm_state;
  fmt::format_to(out, "\nThread {} \"{}\" ({}{})\n", thread.tid, thread.name, state_name(thread.sample.state),
                 vm_state == VmState::none ? "" : fmt::format("; in the {}", name(vm_state)));
  if (thread.sample.loss != Loss::none) fmt::format_to(out, "    no stack: {}\n", name(thread.sample.loss));
  for (auto frame = thread.sample.stack.rbegin(); frame != thread.sample.stack.rend(); ++frame) fmt::format_to(out, "    {}\n", describe(*frame, true));
}

// "3", "3, 5", "3 to 9".
std::string describe_lines(const std::vector<int>& lines) {
  constexpr std::size_t most_told = 4;
  if (lines.size() > most_told) return fmt::format("lines {} to {}", lines.front(), lines.back());
  return fmt::format("line{} {}", lines.size() == 1 ? "" : "s", fmt::join(lines, ", "));
}

std::string describe(const Movement& movement) {
  std::string text = fmt::format("{}, {:.0f} % of a CPU", name(movement.kind), 100 * movement.cpu);
  if (movement.waited >= 0.1) text += fmt::format(", {:.0f} % waiting for one", 100 * movement.waited);
  const Frame* const lua = innermost(movement.inside, Frame::Kind::lua);
  if (lua != nullptr) text += fmt::format("; always inside {}, at {}", describe(*lua, false), describe_lines(movement.lines));
  if (movement.kind == Movement::Kind::hangs && !movement.inside.empty() && lua != &movement.inside.back())
    text += fmt::format(", in {}", describe(movement.inside.back(), false));
  return text;
}

}  // namespace

std::string to_text(const ProcessLook& look) {
  std::string text;
  const Out out(text);
  fmt::format_to(out, "Process {}: {}\n", look.pid, look.command);
  for (const LuaImage& image : look.images) fmt::format_to(out, "{} in {}\n", image.name(), image.path);
  for (const ThreadLook& thread : look.threads) print_thread(out, thread);
  return text;
}

std::string to_text(const ProcessLook& look, const ProcessLook& before) {
  std::string text;
  const Out out(text);
  fmt::format_to(out, "Process {}, {:.1f} s later\n", look.pid, look.time - before.time);
  for (const ThreadLook& thread : look.threads) {
    const auto last = std::ranges::find(before.threads, thread.tid, &ThreadLook::tid);
    const bool same = last != before.threads.end() && last->sample.loss == Loss::none && last->sample.stack == thread.sample.stack;
    if (same) fmt::format_to(out, "\nThread {} \"{}\": as before\n", thread.tid, thread.name);
    else print_thread(out, thread);
  }
  return text;
}

std::string to_text(const std::vector<Movement>& movements, const std::vector<ProcessLook>& looks) {
  std::string text = fmt::format("\nProcess {}, {} looks in {:.1f} s\n", looks.back().pid, looks.size(), looks.back().time - looks.front().time);
  for (const Movement& movement : movements) text += fmt::format("    Thread {} \"{}\" {}\n", movement.tid, movement.name, describe(movement));
  return text;
}

}  // namespace luaspy
