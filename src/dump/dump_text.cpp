#include "dump/dump_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace luaspy {
namespace {

using Out = std::back_insert_iterator<std::string>;

// One variable per line, grouped by kind: people first want to know what the function was called
// with.
void print_variables(Out out, const CallVariables& has) {
  for (const Variable& variable : has.variables)
    fmt::format_to(out, "        {:<9} {} = {}\n", name(variable.kind), variable.name, variable.value);
  if (!has.not_known.empty()) fmt::format_to(out, "        its variables are not known: {}\n", has.not_known);
}

void print_frame(Out out, const Frame& frame, const FrameDetail* detail) {
  fmt::format_to(out, "    {}\n", describe(frame, true));
  if (detail == nullptr) return;
  if (detail->source && !detail->source->text.empty())
    fmt::format_to(out, "        > {}{}\n", detail->source->text,
                   detail->source->changed ? "   (the file has changed since the process started)" : "");
  if (detail->variables) print_variables(out, *detail->variables);
}

// `rows`: the Luas according to the states seen, if no file identified one.
void print_core(Out out, const CoreFacts& core, const std::vector<std::string>& rows) {
  fmt::format_to(out, "Core file {}{}\n", core.path, core.end.empty() ? "" : ": ended by " + core.end);
  if (core.missing_bytes != 0)
    fmt::format_to(out, "It was cut off: {:.1f} MB of memory are missing\n",
                   static_cast<double>(core.missing_bytes) / 1e6);
  for (const CoreFile::MissingFile& file : core.missing_files) {
    fmt::format_to(out, "Native frames in {} are missing: {}\n", printable(file.path),
                   file.differs ? "the file that is there now is a different one"
                                : "the file is not available (--exe, --sysroot)");
  }
  if (!rows.empty()) fmt::format_to(out, "{}, recognised by its states in memory\n", fmt::join(rows, ", "));
}

std::string wait_text(const Wait& wait) { return (wait.halt.kind == Halt::Kind::none ? "waits in " : "") + wait.text; }

std::string where(VmState state) {
  if (state == VmState::machine_code) return "in machine code";
  if (state == VmState::c) return "in a C function";
  return fmt::format("in the {}", name(state));
}

// What the thread does, in a word.
std::string_view state_of(const ThreadLook& thread) {
  return thread.wait && thread.wait->halt.kind != Halt::Kind::none ? name(thread.wait->halt.kind)
                                                                   : name(thread.sample.state);
}

void print_thread(Out out, const ThreadLook& thread) {
  const Sample& sample = thread.sample;
  fmt::format_to(out, "\nThread {}{} ({}{})\n", thread.tid,
                 thread.name.empty() ? "" : fmt::format(" \"{}\"", thread.name), state_of(thread),
                 sample.vm_state == VmState::none ? "" : ", " + where(sample.vm_state));
  if (sample.loss != Loss::none) fmt::format_to(out, "    no stack: {}\n", name(sample.loss));
  if (thread.cpu_wait) fmt::format_to(out, "    {}\n", cpu_wait_text(*thread.cpu_wait));
  for (std::size_t i = sample.stack.size(); i-- > 0;) {
    const bool is_wait = i + 1 == sample.stack.size() && thread.wait && sample.stack[i].kind == Frame::Kind::marker;
    if (is_wait) fmt::format_to(out, "    {}\n", wait_text(*thread.wait));
    else print_frame(out, sample.stack[i], i < thread.details.size() ? &thread.details[i] : nullptr);
  }
}

std::string counts_text(const StateReport& state) {
  std::string text;
  for (std::size_t i = 0; i < coroutine_statuses; ++i) {
    if (state.counts[i] != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", state.counts[i], name(static_cast<CoroutineStatus>(i)));
  }
  return text.empty() ? "none" : text;
}

void print_group(Out out, const CoroutineGroup& group) {
  fmt::format_to(out, "\n{} coroutine{} {}", group.count, group.count == 1 ? "" : "s", name(group.status));
  if (!group.began.name.empty()) fmt::format_to(out, ", with body {}", describe(group.began, false));
  fmt::format_to(out, "\n");
  for (auto frame = group.stack.rbegin(); frame != group.stack.rend(); ++frame) print_frame(out, *frame, nullptr);
}

void print_state(Out out, const StateReport& state, bool with_coroutines) {
  fmt::format_to(out, "\n{} at {:#x}", state.lua, state.G);
  if (state.collector.known) {
    fmt::format_to(out, ": {:.1f} MB in use; collector in {}", static_cast<double>(state.collector.bytes) / 1e6,
                   state.collector.phase);
    if (!state.collector.mode.empty()) fmt::format_to(out, " ({})", state.collector.mode);
  }
  fmt::format_to(out, "\n");
  if (state.hooked != 0) fmt::format_to(out, "    a debug hook watches {} of its coroutines\n", state.hooked);
  if (!with_coroutines) return;
  fmt::format_to(out, "    coroutines: {}{}\n", counts_text(state), state.complete ? "" : "; the list is not complete");
  if (!state.exact)
    fmt::format_to(
        out,
        "    the program is running, and its heap is too big to be read in one stop: coroutines created in the "
        "last moments may be missing\n");
  if (state.garbage != 0) fmt::format_to(out, "    {} more are garbage that is being collected\n", state.garbage);
  if (state.unread != 0) fmt::format_to(out, "    {} more could not be read\n", state.unread);
  for (const CoroutineGroup& group : state.groups) print_group(out, group);
}

// "thread 5 waits for a mutex of thread 6, which waits for one of thread 5".
std::string ring_text(const std::vector<pid_t>& ring) {
  std::string text = fmt::format("thread {} waits for a mutex that thread {} holds", ring[0], ring[1 % ring.size()]);
  for (std::size_t i = 1; i < ring.size(); ++i)
    text += fmt::format(", which waits for one that thread {} holds", ring[(i + 1) % ring.size()]);
  return text;
}

void print_process(Out out, const ProcessLook& look) {
  for (const std::vector<pid_t>& ring : look.deadlocks) fmt::format_to(out, "\nDeadlock: {}\n", ring_text(ring));
  if (look.stood_still_ns != 0)
    fmt::format_to(out, "\nThe running threads stood still for {:.1f} ms\n",
                   static_cast<double>(look.stood_still_ns) / 1e6);
  if (look.disturbed)
    fmt::format_to(out, "\nThe process ran while it was being read: the parts above may not fit together\n");
}

// "3", "3, 5", "3 to 9".
std::string describe_lines(const std::vector<int>& lines) {
  constexpr std::size_t most_told = 4;
  if (lines.size() > most_told) return fmt::format("lines {} to {}", lines.front(), lines.back());
  return fmt::format("line{} {}", lines.size() == 1 ? "" : "s", fmt::join(lines, ", "));
}

// Where the thread always is: the innermost Lua function or C function called from Lua; for a C
// function also its caller.
std::string place_text(const Movement& movement) {
  const Frame* const lua = innermost(movement.inside, Frame::Kind::lua);
  const Frame* const c = innermost(movement.inside, Frame::Kind::c);
  if (lua == nullptr) return {};
  if (c > lua)
    return fmt::format("; always inside {}, called by {} at {}", describe(*c, false), describe(*lua, false),
                       describe_lines(movement.lines));
  return fmt::format("; always inside {}, at {}", describe(*lua, false), describe_lines(movement.lines));
}

std::string describe(const Movement& movement, const ThreadLook* last) {
  std::string text = fmt::format("{}, {:.0f} % of a CPU", name(movement.kind), 100 * movement.cpu);
  if (movement.waited >= 0.1) text += fmt::format(", {:.0f} % waiting for one", 100 * movement.waited);
  text += place_text(movement);
  if (movement.kind == Movement::Kind::stands_still && last != nullptr && last->wait) {
    text += (last->wait->halt.kind == Halt::Kind::none ? ", waiting in " : ", ") + last->wait->text;
  }
  return text;
}

}  // namespace

std::string to_text(const ProcessLook& look, bool with_coroutines) {
  constexpr std::size_t most_command = 4096;  // bytes
  std::string text;
  const Out out(text);
  fmt::format_to(out, "Process {}: {}\n", look.pid, printable(look.command, most_command));
  if (look.core) print_core(out, *look.core, look.images.empty() ? look.rows : std::vector<std::string>{});
  for (const LuaImage& image : look.images) fmt::format_to(out, "{} in {}\n", image.name(), image.path);
  for (const ThreadLook& thread : look.threads) print_thread(out, thread);
  for (const StateReport& state : look.states) print_state(out, state, with_coroutines);
  print_process(out, look);
  return text;
}

std::string to_text(const ProcessLook& look, const ProcessLook& before, bool with_coroutines) {
  std::string text;
  const Out out(text);
  fmt::format_to(out, "Process {}, {:.1f} s later\n", look.pid, look.time - before.time);
  for (const ThreadLook& thread : look.threads) {
    const auto last = std::ranges::find(before.threads, thread.tid, &ThreadLook::tid);
    const bool same = last != before.threads.end() && last->sample.loss == Loss::none &&
                      last->sample.stack == thread.sample.stack;
    if (same) fmt::format_to(out, "\nThread {} \"{}\": as before\n", thread.tid, thread.name);
    else print_thread(out, thread);
  }
  for (const StateReport& state : look.states) print_state(out, state, with_coroutines);
  print_process(out, look);
  return text;
}

std::string to_text(const std::vector<Movement>& movements, const std::vector<ProcessLook>& looks) {
  std::string text = fmt::format("\nProcess {}, {} looks in {:.1f} s\n", looks.back().pid, looks.size(),
                                 looks.back().time - looks.front().time);
  for (const Movement& movement : movements) {
    const auto last = std::ranges::find(looks.back().threads, movement.tid, &ThreadLook::tid);
    text += fmt::format("    Thread {} \"{}\" {}\n", movement.tid, movement.name,
                        describe(movement, last == looks.back().threads.end() ? nullptr : &*last));
  }
  return text;
}

}  // namespace luaspy
