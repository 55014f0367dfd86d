#include "doctor/doctor.h"

#include <elf.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <map>
#include <set>

#include "attach/program_name.h"
#include "attach/switch_log.h"
#include "base/mode.h"
#include "base/say.h"
#include "base/text.h"
#include "base/words.h"
#include "doctor/version_text.h"
#include "luastate/luas.h"
#include "sampling/capture_stop.h"
#include "system/call_names.h"
#include "system/calls.h"
#include "system/signals.h"
#include "system/standard_output.h"
#include "system/written_file.h"
#include "unwind/elf_headers.h"

namespace luaspy {
namespace {

constexpr std::size_t most_looked_at = 64, most_in_full = 8, most_tried_words = 1 << 14, most_told_mappings = 400;
constexpr std::uint64_t most_tried_bytes = 512 << 20;  // bytes

std::string heading(std::string_view text) { return fmt::format("\n== {}\n", text); }

std::string first_line(const std::string& path) {
  std::string text = system::read_file(path).value_or("missing");
  return printable(text.substr(0, text.find('\n')));
}

// The requested lines of a file with lines "Name: value", joined.
std::string lines_of(const std::string& path, std::initializer_list<std::string_view> names) {
  const std::string text = system::read_file(path).value_or("");
  std::string chosen;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = next_line(rest);
    for (const std::string_view name : names) {
      if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
      std::string_view value = line.substr(name.size() + 1);
      chosen += fmt::format("{}{}", chosen.empty() ? "" : "; ", name);
      for (std::string_view word = next_word(value); !word.empty(); word = next_word(value))
        chosen += fmt::format(" {}", printable(word));
    }
  }
  return chosen.empty() ? "not known" : chosen;
}

std::string system_text() {
  utsname names{};
  ::uname(&names);
  std::string distribution = "not known";
  const std::string os_release = system::read_file("/etc/os-release").value_or("");
  for (std::string_view rest = os_release; !rest.empty();) {
    const std::string_view line = next_line(rest);
    constexpr std::string_view name = "PRETTY_NAME=";
    if (line.starts_with(name)) distribution = printable(line.substr(name.size()));
  }
  const system::Failure stops = system::may_stop();
  std::string text = version_text() + "\n" + heading("System");
  text += fmt::format("{} {} on {}; {}; {} CPUs\n", names.sysname, names.release, names.machine, distribution,
                      ::sysconf(_SC_NPROCESSORS_ONLN));
  text += fmt::format("load: {}\n", first_line("/proc/loadavg"));
  text += fmt::format("luaspy's rights: {}\n",
                      lines_of("/proc/self/status", {"Uid", "Gid", "CapPrm", "CapEff", "NoNewPrivs", "Seccomp"}));
  text += fmt::format(
      "kernel.yama.ptrace_scope: {}; kernel.perf_event_paranoid: {}; ptrace: {}; log of a thread's context switches: "
      "{}\n",
      first_line("/proc/sys/kernel/yama/ptrace_scope"), first_line("/proc/sys/kernel/perf_event_paranoid"),
      stops ? stops.text() : "allowed", SwitchLog::open(::gettid()) != nullptr ? "allowed" : "refused");
  return text;
}

// A note of the linker (elf.h, NT_GNU_BUILD_ID), as it is in memory.
std::string build_id(const Memory& memory, const Mapping& first) {
  constexpr std::size_t headers_size = 4096, most_notes = 4096;
  std::vector<std::byte> bytes(std::min<std::size_t>(headers_size, first.end - first.start));
  if (!memory.read(first.start, bytes)) return "cannot be read";
  const std::optional<ElfHeaders> headers = read_elf_headers(bytes);
  if (!headers) return "no ELF header";
  const auto load = std::ranges::find_if(headers->segments,
                                         [](const ProgramHeader& header) { return header.type == PT_LOAD; });
  if (load == headers->segments.end()) return "no segments";
  for (const ProgramHeader& header : headers->segments) {
    if (header.type != PT_NOTE || header.file_size < sizeof(Elf64_Nhdr)) continue;
    std::vector<std::byte> notes(std::min<std::uint64_t>(header.file_size, most_notes));
    if (!memory.read(first.start + (header.address - load->address) + (load->offset - first.offset), notes)) continue;
    const auto padded = [](std::uint32_t size) { return (std::size_t{size} + 3) / 4 * 4; };
    for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
      const auto note = luaspy::load<Elf64_Nhdr>(notes, at);
      const std::size_t content = at + sizeof note + padded(note.n_namesz), end = content + padded(note.n_descsz);
      if (end > notes.size()) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(&notes[at + sizeof note], "GNU", 4) == 0) {
        std::string text;
        for (std::size_t i = content; i < content + note.n_descsz; ++i)
          text += fmt::format("{:02x}", std::to_integer<unsigned>(notes[i]));
        return text;
      }
      at = end;
    }
  }
  return "none";
}

std::string process_text(const Process& process) {
  const std::string own = "/proc/self/", its = fmt::format("/proc/{}/", process.pid());
  std::string text = fmt::format(
      "pid {}; {}\n", process.pid(),
      lines_of(its + "status", {"State", "Uid", "Gid", "CapPrm", "Threads", "TracerPid", "NoNewPrivs", "Seccomp"}));
  text += fmt::format("memory: {}\n", lines_of(its + "status", {"VmPeak", "VmSize", "VmRSS"}));
  for (const char* const space : {"user", "pid", "mnt"}) {
    const std::string name = fmt::format("ns/{}", space);
    const std::optional<std::string> theirs = system::read_link(its + name);
    text += fmt::format("{}{} namespace: {}", text.ends_with('\n') ? "" : "; ", space,
                        !theirs                                   ? "not readable"
                        : theirs == system::read_link(own + name) ? "luaspy's"
                                                                  : "its own");
  }
  const std::string executable = process.executable();
  const std::string program = base_name(program_of(process.pid()));
  text += fmt::format("\nprogram: {}{}\n", base_name(executable),
                      program != base_name(executable) ? ", called " + program : "");
  return text;
}

// Shows neither the names of data files nor those that a program gives to its memory.
std::string kind_of(const Mapping& mapping, const std::set<std::string>& images) {
  if (mapping.inode != 0) {
    if (!images.contains(mapping.path)) return "file without code";
    const std::string name = mapping.path.starts_with("/memfd:") ? "/memfd" : base_name(mapping.path);
    return (mapping.executable ? "code of " : "data of ") + printable(name) + (mapping.deleted ? " (deleted)" : "");
  }
  for (const std::string_view known : {"[heap]", "[stack]", "[vdso]", "[vvar]", "[vsyscall]"}) {
    if (mapping.path == known) return std::string(known);
  }
  return mapping.executable ? "code without a file" : !mapping.readable && !mapping.writable ? "reserved" : "anonymous";
}

std::string flags_of(const Mapping& mapping) {
  return fmt::format("{}{}{}{}", mapping.readable ? 'r' : '-', mapping.writable ? 'w' : '-',
                     mapping.executable ? 'x' : '-', mapping.shared ? 's' : 'p');
}

std::set<std::string> images_in(const AddressSpace& space) {
  std::set<std::string> images;
  for (const Mapping& mapping : space.mappings()) {
    if (mapping.executable && mapping.inode != 0) images.insert(mapping.path);
  }
  return images;
}

std::string mappings_text(const AddressSpace& space) {
  const std::set<std::string> images = images_in(space);
  struct Sum {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const Mapping& mapping : space.mappings()) {
    std::string kind = kind_of(mapping, images);
    if (kind.starts_with("code of ") || kind.starts_with("data of ")) kind = "of files with code";
    Sum& sum = sums[{kind, flags_of(mapping)}];
    sum.count += 1, sum.bytes += mapping.end - mapping.start;
  }
  std::string text;
  for (const auto& [what, sum] : sums)
    text += fmt::format("{} {}: {} with {} KiB\n", what.second, what.first, sum.count, sum.bytes / 1024);
  std::size_t told = 0;
  for (const Mapping& mapping : space.mappings()) {
    if (told++ == most_told_mappings) break;
    text += fmt::format("  {:x}-{:x} {} {:>9} KiB  {}\n", mapping.start, mapping.end, flags_of(mapping),
                        (mapping.end - mapping.start) / 1024, kind_of(mapping, images));
  }
  if (space.mappings().size() > most_told_mappings)
    text += fmt::format("  and {} more\n", space.mappings().size() - most_told_mappings);
  return text;
}

// The files with code: what they are, and whether their functions can be unwound.
std::string modules_text(const StackReader& reader) {
  std::string text;
  const std::set<std::string> images = images_in(reader.space());
  std::set<std::string> told;
  for (const Mapping& mapping : reader.space().mappings()) {
    if (!images.contains(mapping.path) || !told.insert(mapping.path).second) continue;
    const Module* const module = reader.modules().find(mapping.start);
    text += fmt::format("{}{} at {:#x}, build-id {}\n  ", printable(mapping.path, 4096),
                        mapping.deleted ? " (deleted)" : "", mapping.start,
                        build_id(reader.modules().memory(), mapping));
    if (module == nullptr) {
      text += "cannot be read as a module\n";
      continue;
    }
    text += fmt::format(
        "{} bytes of addresses; {}; {}", module->end() - module->lowest(),
        module->eh_frame_hdr() == 0 ? "no .eh_frame_hdr"
                                    : fmt::format(".eh_frame_hdr of {} bytes", module->eh_frame_hdr_size()),
        module->frames() == nullptr ? "its file is not what is mapped, or cannot be opened" : "its file is there");
    const auto is_it = [&](const LuaImage& image) { return image.start == mapping.start; };
    if (std::ranges::any_of(reader.images(), is_it))
      text += fmt::format("; {} functions known", reader.unwinder().functions(*module).size());
    text += '\n';
  }
  return text;
}

std::string quality_text(const Quality& quality) {
  static constexpr std::array names = {"stacks",     "with_lua",       "native_complete", "not_joined",
                                       "lua_broken", "lua_unusable",   "half_built",      "calls_dropped",
                                       "relocated",  "fresh_mismatch", "unclaimed",       "at_system_call",
                                       "remote",     "function_gone",  "no_debug_info"};
  static_assert(names.size() == quality_numbers.size());
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (quality.*quality_numbers[i] != 0) text += fmt::format(" {} {}", names[i], quality.*quality_numbers[i]);
  }
  return text.empty() ? " none" : text;
}

// The names of Lua functions belong to the program and are private; the number of frames of each
// kind is not.
std::string shape_text(const Stack& stack) {
  std::string text;
  for (std::size_t i = 0; i < stack.size();) {
    std::size_t end = i + 1;
    const bool marker = stack[i].kind == Frame::Kind::marker;
    while (!marker && end < stack.size() && stack[end].kind == stack[i].kind) ++end;
    constexpr std::array kinds = {"Lua", "C", "native", ""};
    text += marker ? " " + printable(stack[i].name)
                   : fmt::format(" {} {}", end - i, kinds[static_cast<std::size_t>(stack[i].kind)]);
    i = end;
  }
  return text.empty() ? " empty" : text;
}

std::string step_text(Step step) {
  constexpr std::array names = {"registers", "cfi", "rule", "code", "scan"};
  return names[static_cast<std::size_t>(step)];
}

std::string natives_text(const StackReader& reader, const std::vector<NativeFrame>& natives) {
  constexpr std::size_t at_each_end = 30;
  std::string text;
  for (std::size_t i = 0; i < natives.size(); ++i) {
    if (i == at_each_end && natives.size() > 2 * at_each_end) {
      i = natives.size() - at_each_end;
      text += fmt::format("        {} frames left out\n", i - at_each_end);
    }
    const NativeFrame& frame = natives[i];
    const NativeCode& code = reader.native_code();
    text += fmt::format("        {:>3} {} by {}, sp {:#x}, {}{}{}{}\n", i, address_text(reader, frame.lookup),
                        step_text(frame.step), frame.sp, printable(code.describe(frame).name),
                        frame.in_trace             ? ", machine code"
                        : code.executes_lua(frame) ? ", executes Lua"
                                                   : "",
                        code.carries(frame) ? ", carries" : "",
                        code.lua_code(frame) == NativeFunctions::LuaCode::yes ? ", Lua's own"
                        : code.in_core_module(frame)                          ? ", in a core's module"
                                                                              : "");
  }
  return text;
}

std::string look_text(StackReader& reader, const Sampler::Sampled& sampled, bool in_full) {
  const auto& [sample, from] = sampled;
  if (from == nullptr) return fmt::format("    lost: {}\n", name(sample.loss));
  Stack shown = reader.stacks().frames_of(sample.stack);
  keep_shown(Mode::merged, shown);
  std::string text = fmt::format("    {}, stood still {:.0f} µs, VM {}; quality:{}\n      stack, outermost first:{}\n",
                                 name(sample.state), static_cast<double>(sample.stopped_ns) / 1e3,
                                 name(sample.vm_state), quality_text(sample.quality), shape_text(shown));
  for (const ActiveState& state : from->active())
    text += fmt::format("      lua_State {:#x} of {:#x}, {}, its native frames end at {:#x}\n", state.L, state.G,
                        state.lua->name(), state.boundary);
  if (from->active().empty()) text += "      no lua_State runs on it\n";
  if (in_full)
    text += fmt::format("      {} native frames, innermost first; {} bytes of stack from {:#x}\n",
                        from->natives().size(), from->snapshot().stack().size(), from->snapshot().stack_start()) +
            natives_text(reader, from->natives());
  return text;
}

// Collects the words of a stack that could point to a lua_State.
void collect_words(const AddressSpace& space, const Snapshot& snapshot, std::set<Address>& words) {
  const std::span<const std::byte> stack = snapshot.stack();
  const Address start = snapshot.stack_start();
  const auto consider = [&](Address word) {
    if (!plausible_pointer(word) || word - start < stack.size() || words.size() >= most_tried_words) return;
    const Mapping* const mapping = space.find(word);
    if (mapping != nullptr && mapping->writable) words.insert(word);
  };
  for (std::size_t at = 0; at + 8 <= stack.size(); at += 8) {
    const Address word = load<Address>(stack, at);
    consider(word), consider(word & 0xffffffff), consider(word >> 32);
  }
}

struct ThreadLooks {
  std::string text;
  std::set<Address> words;
  pid_t with_lua = 0;  // the first thread that has a state
  pid_t any = 0;
};

ThreadLooks look_at_threads(Session& session) {
  constexpr int looks_each = 3, tries = 10;
  ThreadLooks looks;
  Process& process = session.target().process();
  StackReader& reader = session.sampler().reader();
  std::vector<Thread*> threads;
  for (const auto& thread : process.threads()) threads.push_back(thread.get());
  for (std::size_t i = 0; i < std::min(threads.size(), most_looked_at); ++i) {
    Thread& thread = *threads[i];
    const ThreadState state = thread.state();
    const Thread::Times times = thread.times();
    looks.text += fmt::format(
        "  thread {}: {}{}, {:.2f} s on a CPU, {:.2f} s waiting for one\n", thread.tid(), thread.state_letter(),
        state.kind == ThreadState::Kind::sleeping ? " in " + system_call_name(state.system_call) : "",
        static_cast<double>(times.on_cpu) / 1e9, static_cast<double>(times.waited_for_cpu) / 1e9);
    if (looks.any == 0) looks.any = thread.tid();
    for (int look = 0, tried = 0; look < looks_each && tried < tries; ++tried) {
      const std::optional<Sampler::Sampled> sampled = session.sampler().sample(thread);
      session.sampler().do_deferred_work();
      if (!sampled || sampled->sample.again) break;
      if (sampled->sample.loss == Loss::moved && tried + 1 < tries) continue;
      const bool has_lua = sampled->sample.quality.with_lua != 0;
      looks.text += look_text(reader, *sampled, i < most_in_full || has_lua);
      ++look;
      if (sampled->from == nullptr) break;
      if (looks.with_lua == 0 && has_lua) looks.with_lua = thread.tid();
      collect_words(reader.space(), sampled->from->snapshot(), looks.words);
    }
  }
  if (threads.size() > most_looked_at)
    looks.text += fmt::format("  and {} more threads, not looked at\n", threads.size() - most_looked_at);
  return looks;
}

std::string lua_text(Session& session, const ThreadLooks& looks) {
  StackReader& reader = session.sampler().reader();
  const Memory& memory = session.target().memory();
  reader.find_states();
  std::string text = heading("Lua states, on stacks and in memory") + states_text(memory, reader);
  text += heading("The functions that execute Lua") + functions_text(reader);
  const std::vector<const Lua*> chosen = reader.layouts_to_try(), all = all_layouts();
  std::vector<RowTrial> on_stacks(all.begin(), all.end()), in_memory(all.begin(), all.end());
  for (const Address word : looks.words) try_word(memory, word, on_stacks);
  text += heading(fmt::format("Layouts tried on {} words of the threads' stacks (*: suggested by the files)",
                              looks.words.size())) +
          trials_text(on_stacks, chosen);
  const std::uint64_t searched = try_memory(memory, reader.contents(), most_tried_bytes, in_memory);
  return text +
         heading(fmt::format("Layouts tried on what looks like a main thread in {} KiB of memory", searched / 1024)) +
         trials_text(in_memory, chosen);
}

std::string head_text() {
  const std::time_t now = std::time(nullptr);
  return fmt::format(
      "luaspy doctor, {:%Y-%m-%d %H:%M} UTC\n"
      "This report contains file names, names of native functions, addresses, sizes and counts. It contains no command "
      "arguments, no environment, and no\n"
      "names or values of the Lua program. Please read it before you send it.\n\n",
      fmt::gmtime(now));
}

Result<void> write(const std::string& path, const std::string& text) {
  const bool to_stdout = path.empty() || path == "-";
  if (!to_stdout) return system::write_file(path, [&](std::ostream& out) { out << text; });
  std::cout << text;
  return system::flush_standard_output("the report");
}

Result<void> save(Session& session, const ThreadLooks& looks, const std::string& path) {
  const Result<SavedStop> stop = capture_stop(session.target(), looks.with_lua != 0 ? looks.with_lua : looks.any,
                                              "doctor");
  if (!stop) return stop.error();
  if (const Result<void> written = system::write_file(path, [&](std::ostream& out) { save_stop(*stop, out); });
      !written)
    return written.error();
  say("luaspy: written: {}\n  It contains registers and memory of the target: parts of a thread's stack and of its Lua "
      "heap, with whatever data is in them.\n",
      path);
  return {};
}

}  // namespace

Result<int> doctor(const DoctorOptions& options) {
  SamplerOptions sampler_options;
  sampler_options.idle = true;
  sampler_options.limits.count_left_out = true;
  sampler_options.patience = std::chrono::seconds(2);
  const std::string head = head_text() + system_text();
  const Result<std::unique_ptr<Session>> opened = Session::open(options.target, sampler_options);
  if (!opened) {
    // A process that luaspy may not look at is worth a report, too.
    const bool refused = opened.error().cause == Cause::permission;
    const std::string reason = options.target.pid != 0 ? opened.error().text + "\n" : "";  // otherwise the text may
                                                                                           // list commands
    const Result<void> written = write(
        options.output, head + heading("Process") +
                            (refused ? "luaspy may not look at it.\n" : "There is no process to look at.\n") + reason);
    return written ? opened.error() : written.error();
  }
  Session& session = **opened;
  system::watch_signals();
  const StackReader& reader = session.sampler().reader();
  std::string text = head + heading("Process") + process_text(session.target().process()) + heading("Detection") +
                     detection_text(reader);
  const ThreadLooks looks = look_at_threads(session);
  text += heading("Threads, and some looks at them") + looks.text + lua_text(session, looks);
  text += heading("Files with code") + modules_text(reader) + heading("Mappings") + mappings_text(reader.space());
  if (!session.target().process().alive())
    return Error{Cause::target_ended,
                 fmt::format("Process {} ended while luaspy looked at it.", session.target().process().pid())};
  if (const Result<void> written = write(options.output, text); !written) return written.error();
  if (options.save.empty()) return 0;
  if (const Result<void> saved = save(session, looks, options.save); !saved) return saved.error();
  return 0;
}

}  // namespace luaspy
