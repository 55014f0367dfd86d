#include "doctor/facts.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "attach/process.h"
#include "attach/program_name.h"
#include "attach/switch_log.h"
#include "base/text.h"
#include "base/words.h"
#include "stack/stack_reader.h"
#include "system/calls.h"
#include "unwind/elf_headers.h"

namespace luaspy {
namespace {

std::string first_line(const std::string& path) {
  std::string text = system::read_file(path).value_or("missing");
  return printable(text.substr(0, text.find('\n')));
}

NamedValues values_of(const std::string& path, std::initializer_list<std::string_view> names) {
  const std::string text = system::read_file(path).value_or("");
  NamedValues chosen;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = next_line(rest);
    for (const std::string_view name : names) {
      if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
      std::string_view value = line.substr(name.size() + 1);
      std::string words;
      for (std::string_view word = next_word(value); !word.empty(); word = next_word(value))
        words += (words.empty() ? "" : " ") + printable(word);
      chosen.emplace_back(name, words);
    }
  }
  return chosen;
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

}  // namespace

SystemFacts system_facts() {
  utsname names{};
  ::uname(&names);
  SystemFacts facts{.name = names.sysname, .release = names.release, .machine = names.machine};
  facts.distribution = "not known";
  const std::string os_release = system::read_file("/etc/os-release").value_or("");
  for (std::string_view rest = os_release; !rest.empty();) {
    const std::string_view line = next_line(rest);
    constexpr std::string_view name = "PRETTY_NAME=";
    if (!line.starts_with(name)) continue;
    facts.distribution = printable(line.substr(name.size()));
    std::erase(facts.distribution, '"');
  }
  facts.cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  facts.load = first_line("/proc/loadavg");
  facts.rights = values_of("/proc/self/status", {"Uid", "Gid", "CapPrm", "CapEff", "NoNewPrivs", "Seccomp"});
  facts.ptrace_scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  facts.perf_event_paranoid = first_line("/proc/sys/kernel/perf_event_paranoid");
  if (const system::Failure stops = system::may_stop()) facts.may_not_stop = stops.text();
  facts.may_log_switches = SwitchLog::open(::gettid()) != nullptr;
  return facts;
}

ProcessFacts process_facts(const Process& process) {
  const std::string own = "/proc/self/", its = fmt::format("/proc/{}/", process.pid());
  ProcessFacts facts{.pid = process.pid()};
  facts.status = values_of(its + "status",
                           {"State", "Uid", "Gid", "CapPrm", "Threads", "TracerPid", "NoNewPrivs", "Seccomp"});
  facts.memory = values_of(its + "status", {"VmPeak", "VmSize", "VmRSS"});
  for (const char* const space : {"user", "pid", "mnt"}) {
    const std::string name = fmt::format("ns/{}", space);
    const std::optional<std::string> theirs = system::read_link(its + name);
    facts.namespaces.emplace_back(space, !theirs                                   ? "not readable"
                                         : theirs == system::read_link(own + name) ? "luaspy's"
                                                                                   : "its own");
  }
  facts.program = base_name(process.executable());
  const std::string called = base_name(program_of(process.pid()));
  if (called != facts.program) facts.called = called;
  return facts;
}

std::vector<MappingFacts> mapping_facts(const AddressSpace& space) {
  const std::set<std::string> images = images_in(space);
  std::vector<MappingFacts> facts;
  for (const Mapping& mapping : space.mappings())
    facts.push_back({mapping.start, mapping.end, flags_of(mapping), kind_of(mapping, images)});
  return facts;
}

std::vector<ModuleFacts> module_facts(const StackReader& reader) {
  std::vector<ModuleFacts> facts;
  const std::set<std::string> images = images_in(reader.space());
  std::set<std::string> seen;
  for (const Mapping& mapping : reader.space().mappings()) {
    if (!images.contains(mapping.path) || !seen.insert(mapping.path).second) continue;
    constexpr std::size_t longest_path = 4096;
    ModuleFacts& one = facts.emplace_back();
    one.path = printable(mapping.path, longest_path);
    one.build_id = build_id(reader.modules().memory(), mapping);
    one.deleted = mapping.deleted;
    one.start = mapping.start;
    const Module* const module = reader.modules().find(mapping.start);
    if (module == nullptr) continue;
    one.bytes = module->end() - module->lowest();
    if (module->eh_frame_hdr() != 0) one.eh_frame_hdr_bytes = module->eh_frame_hdr_size();
    one.functions_described = module->frame_index().size();
    one.has_file = module->frames() != nullptr;
    const auto is_it = [&](const LuaImage& image) { return image.start == mapping.start; };
    if (std::ranges::any_of(reader.images(), is_it)) one.functions = reader.unwinder().functions(*module).size();
  }
  return facts;
}

std::vector<std::pair<std::string, std::int64_t>> quality_facts(const Quality& quality) {
  static constexpr std::array names = {"stacks",     "with_lua",       "native_complete", "not_joined",
                                       "lua_broken", "lua_unusable",   "half_built",      "calls_dropped",
                                       "relocated",  "fresh_mismatch", "unclaimed",       "at_system_call",
                                       "remote",     "function_gone",  "no_debug_info"};
  static_assert(names.size() == quality_numbers.size());
  std::vector<std::pair<std::string, std::int64_t>> facts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (quality.*quality_numbers[i] != 0) facts.emplace_back(names[i], quality.*quality_numbers[i]);
  }
  return facts;
}

}  // namespace luaspy
