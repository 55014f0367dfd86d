// What luaspy doctor says about the Luas in a process.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/doctor.h"
#include "luastate/collector.h"
#include "luastate/puc/execute_code.h"

namespace luaspy {

std::string address_text(const StackReader& reader, Address address) {
  const Module* const module = reader.modules().find(address);
  if (module != nullptr) return fmt::format("{}+{:#x}", printable(module->name()), address - module->bias());
  const Mapping* const mapping = reader.space().find(address);
  if (mapping == nullptr) return "an address that is not mapped";
  return mapping->executable ? "executable memory without a file" : "memory without code";
}

std::string detection_text(const StackReader& reader) {
  std::string text = fmt::format("Searched {} files with code for a Lua core.\n", reader.searched().size());
  for (const LuaImage& image : reader.images()) {
    text += fmt::format("{} in {} at {:#x}-{:#x}\n  recognised by \"{}\"{}\n  layouts, best first:", image.name(),
                        image.path, image.start, image.end, printable(image.ident),
                        image.certain ? "" : ", which programs without Lua may contain, too");
    for (const Lua* const layout : image.layouts) text += fmt::format(" {};", layout->name());
    if (image.layouts.empty()) text += " none; luaspy does not support it";
    text += '\n';
  }
  if (reader.images().empty()) {
    text +=
        "None of them identifies itself as one. These contain no identity string of Lua (\"$LuaVersion: Lua 5.\", "
        "\"$Lua: Lua 5.\", \"LuaJIT 2.\", \"Lua 5.N\"):\n";
    for (const std::string& path : reader.searched()) text += "  " + path + "\n";
  }
  return text;
}

std::string states_text(const Memory& memory, const StackReader& reader) {
  std::vector<std::pair<Address, const Lua*>> states(reader.lua().global_states().begin(),
                                                     reader.lua().global_states().end());
  std::ranges::sort(states, {}, [](const auto& state) { return state.first; });
  std::string text;
  constexpr std::size_t most = 32;
  for (std::size_t i = 0; i < std::min(states.size(), most); ++i) {
    const auto& [G, lua] = states[i];
    const Address main = lua->main_thread(memory, G);
    const char* const why_not = main == 0 ? "its main thread cannot be read" : lua->misfit(memory, main);
    const CollectorState collector = lua->collector(memory, G);
    text += fmt::format("global_State {:#x}: {}; main thread {:#x}; cross-links {}\n", G, lua->name(), main,
                        why_not == nullptr ? "hold" : "do not hold: " + std::string(why_not));
    if (collector.known)
      text += fmt::format("  collector: {}, {}, {} bytes in use\n", collector.phase, collector.mode, collector.bytes);
    else text += "  its collector cannot be read\n";
    const std::vector<LuaStates::FoundField> found = lua->found_fields();
    if (!found.empty()) text += "  fields of global_State:";
    for (const auto& [name, offset] : found)
      text += offset == no_field ? fmt::format(" {} not found", name) : fmt::format(" {} {}", name, offset);
    if (!found.empty()) text += '\n';
  }
  if (states.size() > most) text += fmt::format("and {} more\n", states.size() - most);
  return states.empty() ? "None.\n" : text;
}

std::string trials_text(const std::vector<RowTrial>& trials, const std::vector<const Lua*>& chosen) {
  std::string text;
  for (const RowTrial& trial : trials) {
    text += fmt::format("{} {}: ", std::ranges::find(chosen, &trial.lua) != chosen.end() ? '*' : ' ', trial.lua.name());
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

std::string functions_text(const StackReader& reader) {
  std::string text;
  for (const NativeCode::VmImage& image : reader.native_code().vm_images()) {
    const Module* const module = reader.modules().find(image.start);
    text += fmt::format("{} at {:#x}: ", module != nullptr ? printable(module->name()) : "an image that cannot be read",
                        image.start);
    if (image.vm) {
      text += fmt::format(
          "LuaJIT's virtual machine is {} to {}; its C frame has {} bytes{}{}; {} sequences create or remove it; trace "
          "exit {}\n",
          address_text(reader, image.vm->start), address_text(reader, image.vm->end), image.vm->frame_size,
          image.vm->also_saved.empty() ? "" : ", saves ", image.vm->also_saved, image.vm->sequences.size(),
          image.vm->trace_exit ? "found" : "not found");
      continue;
    }
    if (image.executes.empty()) {
      text += "no function looks like a bytecode interpreter\n";
      continue;
    }
    for (const Unwinder::Range& execute : image.executes) {
      std::vector<std::byte> code(execute.end - execute.start);
      const bool read = module != nullptr && module->read(execute.start, code);
      const std::optional<Symbol> symbol = module != nullptr ? module->symbol(execute.start) : std::nullopt;
      text += fmt::format("luaV_execute is {}, {} bytes, score {}, symbol {}; ", address_text(reader, execute.start),
                          code.size(), read ? interpreter_score(code) : 0, symbol ? printable(symbol->name) : "none");
    }
    const auto known = std::ranges::find_if(image.collectors,
                                            [](const CollectorCode& collector) { return collector.step != 0; });
    text += fmt::format("collector {}\n", known != image.collectors.end()
                                              ? "found at " + address_text(reader, known->step)
                                              : "not found");
  }
  return text.empty() ? "No image with a Lua core, so none was looked for.\n" : text;
}

}  // namespace luaspy
