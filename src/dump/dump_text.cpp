#include "dump/dump_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/tail_calls.h"
#include "base/text.h"

namespace luaspy {
namespace {

struct Out {
  std::string& to;
  const Paint& paint;
};

// One variable per line, grouped by kind: people first want to know what the function was called
// with.
void print_variables(Out out, const CallVariables& has) {
  for (const Variable& variable : has.variables)
    out.to += fmt::format("        {:<9} {} = {}\n", name(variable.kind), out.paint(Ink::strong, variable.name),
                          out.paint(Ink::value, variable.value));
  if (!has.not_known.empty()) out.to += fmt::format("        its variables are not known: {}\n", has.not_known);
}

// Functions stand out from where they are.
std::string frame_text(const Frame& frame, const Paint& paint) {
  const std::string text = describe(frame, true);
  const Ink ink = frame.kind == Frame::Kind::lua ? Ink::strong : frame.kind == Frame::Kind::c ? Ink::c : Ink::plain;
  return paint(ink, text.substr(0, frame.name.size())) + paint(Ink::dim, text.substr(frame.name.size()));
}

void print_compiler(Out out, const CompilerFunction& function) {
  constexpr std::size_t most = 400;  // bytes
  for (const std::string& sentence : decisions_of(function))
    out.to += fmt::format("        compiler: {}\n", printable(sentence, most));
}

// `function`: what LuaJIT's compiler has decided about it; or nullptr.
void print_frame(Out out, const Frame& frame, const FrameDetail* detail, const CompilerFunction* function) {
  const bool is_tail_calls = frame.kind == Frame::Kind::marker && frame.name == tail_calls_name;
  out.to += fmt::format("    {}{}\n", frame_text(frame, out.paint),
                        is_tail_calls ? out.paint(Ink::dim, fmt::format(": {}", tail_calls_meaning)) : "");
  if (detail == nullptr) return;
  if (detail->source && !detail->source->text.empty()) out.to += fmt::format("        > {}\n", detail->source->shown());
  if (function != nullptr) print_compiler(out, *function);
  if (detail->variables) print_variables(out, *detail->variables);
}

// `rows`: the Luas according to the states seen, if no file identified one.
void print_core(Out out, const CoreFacts& core, const std::vector<std::string>& rows) {
  out.to += fmt::format("Core file {}{}\n", core.path, core.end.empty() ? "" : ": ended by " + core.end);
  if (core.missing_bytes != 0)
    out.to += fmt::format("It was cut off: {:.1f} MB of memory are missing\n",
                          static_cast<double>(core.missing_bytes) / 1e6);
  for (const CoreFacts::MissingFile& file : core.missing_files) {
    out.to += fmt::format("Native frames in {} are missing: {}\n", printable(file.path),
                          file.differs ? "the file that is there now is a different one"
                                       : "the file is not available (--exe, --sysroot)");
  }
  if (!rows.empty()) out.to += fmt::format("{}, recognised by its states in memory\n", joined(rows, ", "));
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

void print_thread(Out out, const ThreadLook& thread, const ProcessLook& look) {
  const Sample& sample = thread.sample;
  const std::string title = fmt::format("Thread {}{}", thread.tid,
                                        thread.name.empty() ? "" : fmt::format(" \"{}\"", thread.name));
  out.to += fmt::format("\n{} ({}{})\n", out.paint(Ink::heading, title), state_of(thread),
                        sample.vm_state == VmState::none ? "" : ", " + where(sample.vm_state));
  if (sample.loss != Loss::none)
    out.to += fmt::format("    {}\n", out.paint(Ink::warning, fmt::format("no stack: {}", name(sample.loss))));
  if (thread.cpu_wait) out.to += fmt::format("    {}\n", out.paint(Ink::warning, cpu_wait_text(*thread.cpu_wait)));
  for (std::size_t i = thread.stack.size(); i-- > 0;) {
    const bool is_wait = i + 1 == thread.stack.size() && thread.wait && thread.stack[i].kind == Frame::Kind::marker;
    if (is_wait) out.to += fmt::format("    {}\n", out.paint(Ink::warning, wait_text(*thread.wait)));
    else if (i < thread.details.size())
      print_frame(out, thread.stack[i], &thread.details[i], function_in(look, thread.details[i]));
    else print_frame(out, thread.stack[i], nullptr, nullptr);
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

// Without upvalues: they are mostly the same for all coroutines of a group (JSON has them).
std::string values_text(const CallVariables& has, const Paint& paint) {
  std::string text;
  for (const Variable& variable : has.variables) {
    if (variable.kind == Variable::Kind::upvalue) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", paint(Ink::strong, variable.name),
                        paint(Ink::value, variable.value));
  }
  return text;
}

void print_detail(Out out, const CoroutineDetail& detail, const Stack& stack) {
  out.to += fmt::format("    coroutine at {:#x}\n", detail.L);
  for (std::size_t i = std::min(stack.size(), detail.variables.size()); i-- > 0;) {
    const std::string values = values_text(detail.variables[i], out.paint);
    if (!values.empty()) out.to += fmt::format("        {}: {}\n", stack[i].name, values);
  }
}

void print_group(Out out, const CoroutineGroup& group, const ProcessLook& look) {
  std::string title = fmt::format("{} coroutine{} {}", group.count, group.count == 1 ? "" : "s", name(group.status));
  if (!group.began.name.empty()) title += fmt::format(", with body {}", describe(group.began, false));
  out.to += fmt::format("\n{}\n", out.paint(Ink::heading, title));
  for (const std::string& error : group.errors)
    out.to += fmt::format("    {}\n", out.paint(Ink::warning, "error: " + error));
  for (auto frame = group.stack.rbegin(); frame != group.stack.rend(); ++frame) {
    FrameDetail detail;
    if (const auto source = look.sources.find({frame->file, frame->line}); source != look.sources.end())
      detail.source = source->second;
    print_frame(out, *frame, &detail, nullptr);
  }
  for (const CoroutineDetail& detail : group.details) print_detail(out, detail, group.stack);
  const auto shown = static_cast<std::int64_t>(group.details.size());
  if (shown != 0 && shown < group.count)
    out.to += fmt::format("    {} more, without their variables\n", group.count - shown);
  if (shown != 0 || group.examples.empty()) return;
  std::string addresses;
  for (const Address L : group.examples) addresses += fmt::format("{}{:#x}", addresses.empty() ? "" : ", ", L);
  const auto more = group.count - static_cast<std::int64_t>(group.examples.size());
  out.to += fmt::format("    at {}{}\n", addresses, more > 0 ? fmt::format(" and {} more", more) : "");
}

// Functions of which something is known, those that were not compiled first.
void print_compiler(Out out, const CompilerLook& compiler) {
  constexpr std::size_t most = 20, most_sentence = 400;  // functions; bytes
  out.to += fmt::format("    compiler: {}; traces: {}{}\n",
                        !compiler.is_on   ? "not known whether it is on"
                        : *compiler.is_on ? "on"
                                          : "off (jit.off)",
                        compiler.traces,
                        compiler.is_found ? "" : "; its state was not found: attempts and reasons are not known");
  std::vector<const CompilerFunction*> decided;
  for (const auto& [prototype, function] : compiler.functions) {
    if (function.is_decided() && compiler.is_on != false) decided.push_back(&function);
  }
  const auto is_compiled = [](const CompilerFunction* function) {
    return !function->is_off && std::ranges::none_of(function->parts, [](const CompilerPart& part) {
      return part.why.why == WhyInterpreted::blacklisted || part.why.why == WhyInterpreted::aborted;
    });
  };
  std::ranges::stable_sort(decided, {}, [&](const CompilerFunction* function) {
    return std::tuple(is_compiled(function), function->file, function->line_defined);
  });
  for (std::size_t i = 0; i < std::min(most, decided.size()); ++i) {
    const std::string place = decided[i]->line_defined == 0
                                  ? "main chunk of " + decided[i]->file
                                  : fmt::format("{}:{}", decided[i]->file, decided[i]->line_defined);
    for (const std::string& sentence : decisions_of(*decided[i]))
      out.to += fmt::format("        {}: {}\n", printable(place), printable(sentence, most_sentence));
  }
  if (decided.size() > most) out.to += fmt::format("        … {} functions in all; --json has them\n", decided.size());
  if (!compiler.has_all_functions)
    out.to +=
        "        some functions may be missing: the list of all objects changed while it was read, "
        "or is very long\n";
}

void print_state(Out out, const StateReport& state, const ProcessLook& look, bool with_coroutines) {
  out.to += fmt::format("\n{} at {:#x}", state.lua, state.G);
  if (state.collector.known) {
    out.to += fmt::format(": {:.1f} MB of Lua objects; its garbage collector is in {}",
                          static_cast<double>(state.collector.bytes) / 1e6, state.collector.phase);
    if (!state.collector.mode.empty()) out.to += fmt::format(" ({})", state.collector.mode);
  }
  out.to += '\n';
  if (state.hooked != 0) out.to += fmt::format("    a debug hook watches {} of its coroutines\n", state.hooked);
  if (const auto compiler = look.compilers.find(state.G); compiler != look.compilers.end())
    print_compiler(out, compiler->second);
  if (!with_coroutines) return;
  out.to += fmt::format("    coroutines: {}{}\n", counts_text(state),
                        state.complete ? "" : "; the list is not complete");
  if (!state.exact)
    out.to +=
        "    the program is running, and its heap is too big to be read in one stop: coroutines created in the "
        "last moments may be missing\n";
  if (state.garbage != 0) out.to += fmt::format("    {} more are garbage that is being collected\n", state.garbage);
  if (state.unread != 0) out.to += fmt::format("    {} more could not be read\n", state.unread);
  for (const CoroutineGroup& group : state.groups) print_group(out, group, look);
}

// "thread 5 waits for a mutex of thread 6, which waits for one of thread 5".
std::string ring_text(const std::vector<pid_t>& ring) {
  std::string text = fmt::format("thread {} waits for a mutex that thread {} holds", ring[0], ring[1 % ring.size()]);
  for (std::size_t i = 1; i < ring.size(); ++i)
    text += fmt::format(", which waits for one that thread {} holds", ring[(i + 1) % ring.size()]);
  return text;
}

// What the look has cost the process. `look`: of a live one.
std::string standstill_text(const ProcessLook& look) {
  if (look.stood_still_ns != 0)
    return fmt::format("luaspy held the running threads for {:.1f} ms while it read this",
                       static_cast<double>(look.stood_still_ns) / 1e6);
  std::int64_t stopped = 0, longest_ns = 0;
  bool any_runs = false;
  for (const ThreadLook& thread : look.threads) {
    any_runs |= thread.sample.state == Sample::State::running;
    stopped += thread.sample.stopped_ns != 0;
    longest_ns = std::max(longest_ns, thread.sample.stopped_ns);
  }
  if (stopped == 0)
    return any_runs ? "The process was not stopped" : "The process was not stopped: none of its threads ran";
  return fmt::format("luaspy stopped {} of {} thread{}, {}for {:.2f} ms", stopped, look.threads.size(),
                     look.threads.size() == 1 ? "" : "s", stopped == 1 ? "" : "one after the other, each at most ",
                     static_cast<double>(longest_ns) / 1e6);
}

void print_process(Out out, const ProcessLook& look) {
  for (const std::vector<pid_t>& ring : look.deadlocks)
    out.to += fmt::format("\n{}\n", out.paint(Ink::hot, "Deadlock: " + ring_text(ring)));
  if (!look.core && !look.threads.empty()) out.to += fmt::format("\n{}\n", standstill_text(look));
  if (look.disturbed) out.to += "\nThe process ran while it was being read: the parts above may not fit together\n";
}

// "3", "3, 5", "3 to 9".
std::string describe_lines(const std::vector<int>& lines) {
  constexpr std::size_t most_told = 4;
  if (lines.size() > most_told) return fmt::format("lines {} to {}", lines.front(), lines.back());
  return fmt::format("line{} {}", lines.size() == 1 ? "" : "s", joined(lines, ", "));
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

std::string to_text(const ProcessLook& look, bool with_coroutines, const Paint& paint) {
  constexpr std::size_t most_command = 4096;  // bytes
  std::string text;
  const Out out{text, paint};
  out.to += fmt::format("Process {}: {}\n", look.pid, printable(look.command, most_command));
  if (look.core) print_core(out, *look.core, look.images.empty() ? look.layouts : std::vector<std::string>{});
  for (const LuaImage& image : look.images) out.to += fmt::format("{} in {}\n", image.name(), image.path);
  for (const ThreadLook& thread : look.threads) print_thread(out, thread, look);
  for (const StateReport& state : look.states) print_state(out, state, look, with_coroutines);
  print_process(out, look);
  return text;
}

std::string to_text(const ProcessLook& look, const ProcessLook& before, bool with_coroutines, const Paint& paint) {
  std::string text;
  const Out out{text, paint};
  out.to += fmt::format("Process {}, {:.1f} s later\n", look.pid, look.time - before.time);
  for (const ThreadLook& thread : look.threads) {
    const auto last = std::ranges::find(before.threads, thread.tid, &ThreadLook::tid);
    const bool same = last != before.threads.end() && last->sample.loss == Loss::none && last->stack == thread.stack;
    if (same) out.to += fmt::format("\nThread {} \"{}\": as before\n", thread.tid, thread.name);
    else print_thread(out, thread, look);
  }
  for (const StateReport& state : look.states) print_state(out, state, look, with_coroutines);
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
