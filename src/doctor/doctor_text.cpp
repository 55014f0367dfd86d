#include "doctor/doctor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/time_text.h"
#include "doctor/looks.h"
#include "doctor/version_text.h"
#include "luastate/lua.h"

namespace luaspy {
namespace {

constexpr std::size_t most_mappings_shown = 400;

std::string heading(std::string_view text) { return fmt::format("\n== {}\n", text); }

// "Uid 0 0 0 0; Gid 0 0 0 0"
std::string listed(const NamedValues& values) {
  std::string text;
  for (const auto& [name, value] : values) text += fmt::format("{}{} {}", text.empty() ? "" : "; ", name, value);
  return text.empty() ? "not known" : text;
}

std::string head_text(std::time_t now) {
  return fmt::format(
      "luaspy doctor, {} UTC\n"
      "This report contains file names, names of native functions, addresses, sizes and counts. It contains no command "
      "arguments, no environment, and no\n"
      "names or values of the Lua program. Please read it before you send it.\n\n",
      utc_text(now, "%Y-%m-%d %H:%M"));
}

std::string system_text(const SystemFacts& system) {
  return version_text() + "\n" + heading("System") +
         fmt::format("{} {} on {}; {}; {} CPUs\n", system.name, system.release, system.machine, system.distribution,
                     system.cpus) +
         fmt::format("load: {}\nluaspy's rights: {}\n", system.load, listed(system.rights)) +
         fmt::format(
             "kernel.yama.ptrace_scope: {}; kernel.perf_event_paranoid: {}; ptrace: {}; log of a thread's context "
             "switches: {}\n",
             system.ptrace_scope, system.perf_event_paranoid,
             system.may_not_stop.empty() ? "allowed" : system.may_not_stop,
             system.may_log_switches ? "allowed" : "refused");
}

std::string process_text(const ProcessFacts& process) {
  std::string text = fmt::format("pid {}; {}\nmemory: {}\n", process.pid, listed(process.status),
                                 listed(process.memory));
  std::string spaces;
  for (const auto& [name, whose] : process.namespaces)
    spaces += fmt::format("{}{} namespace: {}", spaces.empty() ? "" : "; ", name, whose);
  return text + spaces +
         fmt::format("\nprogram: {}{}\n", process.program, process.called.empty() ? "" : ", called " + process.called);
}

std::string detection_text(const DoctorReport& report) {
  std::string text = fmt::format("Searched {} files with code for a Lua core.\n", report.searched.size());
  for (const LuaImage& image : report.images) {
    text += fmt::format("{} in {} at {:#x}-{:#x}\n  recognised by \"{}\"{}\n  layouts, best first:", image.name(),
                        image.path, image.start, image.end, printable(image.ident),
                        image.certain ? "" : ", which programs without Lua may contain, too");
    for (const Lua* const layout : image.layouts) text += fmt::format(" {};", layout->name());
    if (image.layouts.empty()) text += " none; luaspy does not support it";
    text += '\n';
  }
  if (!report.images.empty()) return text;
  text +=
      "None of them identifies itself as one. These contain no identity string of Lua (\"$LuaVersion: Lua 5.\", "
      "\"$Lua: Lua 5.\", \"LuaJIT 2.\", \"Lua 5.N\"):\n";
  for (const std::string& path : report.searched) text += "  " + path + "\n";
  return text;
}

std::string natives_text(const LookFacts& look) {
  std::string text = fmt::format("      {} native frames, innermost first; {} bytes of stack from {:#x}\n",
                                 look.native_count, look.stack_bytes, look.stack_start);
  const std::size_t left_out = look.native_count - look.natives.size();
  for (std::size_t i = 0; i < look.natives.size(); ++i) {
    const NativeFacts& native = look.natives[i];
    const bool after_gap = left_out != 0 && i >= shown_at_each_end;
    if (after_gap && i == shown_at_each_end) text += fmt::format("        {} frames left out\n", left_out);
    text += fmt::format("        {:>3} {} by {}, sp {:#x}, {}{}{}\n", i + (after_gap ? left_out : 0), native.address,
                        native.step, native.sp, native.name, native.is.empty() ? "" : ", ", joined(native.is, ", "));
  }
  return text;
}

std::string look_text(const LookFacts& look) {
  if (!look.lost.empty()) return fmt::format("    lost: {}\n", look.lost);
  std::string qualities, shape;
  for (const auto& [name, count] : quality_facts(look.quality)) qualities += fmt::format(" {} {}", name, count);
  for (const auto& [what, count] : look.shape) shape += count == 0 ? " " + what : fmt::format(" {} {}", count, what);
  std::string text = fmt::format("    {}, stood still {:.0f} µs, VM {}; quality:{}\n      stack, outermost first:{}\n",
                                 look.state, static_cast<double>(look.stopped_ns) / 1e3, look.vm_state,
                                 qualities.empty() ? " none" : qualities, shape.empty() ? " empty" : shape);
  for (const LookFacts::State& state : look.states)
    text += fmt::format("      lua_State {:#x} of {:#x}, {}, its native frames end at {:#x}\n", state.L, state.G,
                        state.lua, state.boundary);
  if (look.states.empty()) text += "      no lua_State runs on it\n";
  return look.in_full ? text + natives_text(look) : text;
}

std::string threads_text(const DoctorReport& report) {
  std::string text;
  for (const ThreadFacts& thread : report.threads) {
    text += fmt::format("  thread {}: {}{}, {:.2f} s on a CPU, {:.2f} s waiting for one\n", thread.tid, thread.state,
                        thread.system_call.empty() ? "" : " in " + thread.system_call, thread.on_cpu,
                        thread.waited_for_cpu);
    for (const LookFacts& look : thread.looks) text += look_text(look);
  }
  if (report.threads_left_out != 0)
    text += fmt::format("  and {} more threads, not looked at\n", report.threads_left_out);
  return text;
}

std::string states_text(const std::vector<StateFacts>& states) {
  std::string text;
  constexpr std::size_t most = 32;
  for (std::size_t i = 0; i < std::min(states.size(), most); ++i) {
    const StateFacts& state = states[i];
    text += fmt::format("global_State {:#x}: {}; main thread {:#x}; cross-links {}\n", state.G, state.lua,
                        state.main_thread, state.misfit.empty() ? "hold" : "do not hold: " + state.misfit);
    const CollectorState& collector = state.collector;
    if (collector.known)
      text += fmt::format("  collector: {}, {}, {} bytes in use\n", collector.phase, collector.mode, collector.bytes);
    else text += "  its collector cannot be read\n";
    if (!state.fields.empty()) text += "  fields of global_State:";
    for (const auto& [name, offset] : state.fields)
      text += offset ? fmt::format(" {} {}", name, *offset) : fmt::format(" {} not found", name);
    if (!state.fields.empty()) text += '\n';
  }
  if (states.size() > most) text += fmt::format("and {} more\n", states.size() - most);
  return states.empty() ? "None.\n" : text;
}

std::string trials_text(const std::vector<TrialFacts>& trials) {
  std::string text;
  for (const auto& [trial, suggested] : trials) {
    text += fmt::format("{} {}: ", suggested ? '*' : ' ', trial.lua.name());
    if (trial.fitted != 0) text += fmt::format("fits at {} (first {:#x})", trial.fitted, trial.first_fit);
    else text += trial.failed.empty() ? "nothing looks like its lua_State" : "fits nowhere";
    text += '\n';
    std::vector<std::pair<std::string, RowTrial::Failures>> failed(trial.failed.begin(), trial.failed.end());
    std::ranges::stable_sort(failed, std::greater(), [](const auto& each) { return each.second.count; });
    for (const auto& [check, failures] : failed)
      text += fmt::format("      not at {} (first {:#x}): {}\n", failures.count, failures.first, check);
  }
  return text;
}

std::string interpreter_text(const InterpreterFacts& image) {
  const std::string text = fmt::format(
      "{} at {:#x}: ", image.module.empty() ? "an image that cannot be read" : image.module, image.start);
  if (image.vm) {
    return text + fmt::format(
                      "LuaJIT's virtual machine is {} to {}; its C frame has {} bytes{}{}; {} sequences create or "
                      "remove it; trace exit {}\n",
                      image.vm->start, image.vm->end, image.vm->frame_bytes,
                      image.vm->also_saves.empty() ? "" : ", saves ", image.vm->also_saves, image.vm->sequences,
                      image.vm->has_trace_exit ? "found" : "not found");
  }
  if (image.executes.empty()) return text + "no function looks like a bytecode interpreter\n";
  std::string executes;
  for (const InterpreterFacts::Execute& execute : image.executes)
    executes += fmt::format("luaV_execute is {}, {} bytes, score {}, symbol {}; ", execute.address, execute.bytes,
                            execute.score, execute.symbol.empty() ? "none" : execute.symbol);
  return text + executes +
         fmt::format("collector {}\n", image.collector.empty() ? "not found" : "found at " + image.collector);
}

std::string interpreters_text(const std::vector<InterpreterFacts>& images) {
  std::string text;
  for (const InterpreterFacts& image : images) text += interpreter_text(image);
  return text.empty() ? "No image with a Lua core, so none was looked for.\n" : text;
}

std::string modules_text(const std::vector<ModuleFacts>& modules) {
  std::string text;
  for (const ModuleFacts& module : modules) {
    text += fmt::format("{}{} at {:#x}, build-id {}\n  ", module.path, module.deleted ? " (deleted)" : "", module.start,
                        module.build_id);
    if (!module.bytes) {
      text += "cannot be read as a module\n";
      continue;
    }
    text += fmt::format("{} bytes of addresses; {}, {} functions described; {}{}\n", *module.bytes,
                        module.eh_frame_hdr_bytes == 0
                            ? "no .eh_frame_hdr"
                            : fmt::format(".eh_frame_hdr of {} bytes", module.eh_frame_hdr_bytes),
                        module.functions_described,
                        module.has_file ? "its file is there" : "its file is not what is mapped, or cannot be opened",
                        module.functions ? fmt::format("; {} functions known", *module.functions) : "");
  }
  return text;
}

std::string mappings_text(const std::vector<MappingFacts>& mappings) {
  struct Sum {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const MappingFacts& mapping : mappings) {
    const bool of_image = mapping.kind.starts_with("code of ") || mapping.kind.starts_with("data of ");
    Sum& sum = sums[{of_image ? "of files with code" : mapping.kind, mapping.flags}];
    sum.count += 1, sum.bytes += mapping.end - mapping.start;
  }
  std::string text;
  for (const auto& [what, sum] : sums)
    text += fmt::format("{} {}: {} with {} KiB\n", what.second, what.first, sum.count, sum.bytes / 1024);
  for (std::size_t i = 0; i < std::min(mappings.size(), most_mappings_shown); ++i) {
    const MappingFacts& mapping = mappings[i];
    text += fmt::format("  {:x}-{:x} {} {:>9} KiB  {}\n", mapping.start, mapping.end, mapping.flags,
                        (mapping.end - mapping.start) / 1024, mapping.kind);
  }
  if (mappings.size() > most_mappings_shown)
    text += fmt::format("  and {} more\n", mappings.size() - most_mappings_shown);
  return text;
}

}  // namespace

std::string text_of(const DoctorReport& report) {
  const std::string head = head_text(report.time) + system_text(report.system) + heading("Process");
  if (!report.process) return head + report.refusal;
  return head + process_text(*report.process) + heading("Detection") + detection_text(report) +
         heading("Threads, and some looks at them") + threads_text(report) +
         heading("Lua states, on stacks and in memory") + states_text(report.states) +
         heading("The functions that execute Lua") + interpreters_text(report.interpreters) +
         heading(fmt::format("Layouts tried on {} words of the threads' stacks (*: suggested by the files)",
                             report.stack_words)) +
         trials_text(report.on_stacks) +
         heading(fmt::format("Layouts tried on what looks like a main thread in {} KiB of memory",
                             report.searched_bytes / 1024)) +
         trials_text(report.in_memory) + heading("Files with code") + modules_text(report.modules) +
         heading("Mappings") + mappings_text(report.mappings);
}

}  // namespace luaspy
