// What luaspy doctor finds out about the Luas in a process.

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/facts.h"
#include "luastate/collector.h"
#include "luastate/puc/execute_code.h"
#include "stack/stack_reader.h"

namespace luaspy {

std::string address_text(const StackReader& reader, Address address) {
  const Module* const module = reader.modules().find(address);
  if (module != nullptr) return fmt::format("{}+{:#x}", printable(module->name()), address - module->bias());
  const Mapping* const mapping = reader.space().find(address);
  if (mapping == nullptr) return "an address that is not mapped";
  return mapping->executable ? "executable memory without a file" : "memory without code";
}

std::vector<StateFacts> state_facts(const Memory& memory, const StackReader& reader) {
  std::vector<StateFacts> facts;
  for (const auto& [G, lua] : reader.lua().global_states()) {
    StateFacts& state = facts.emplace_back();
    state.G = G, state.main_thread = lua->main_thread(memory, G), state.lua = lua->name();
    const char* const why_not = state.main_thread == 0 ? "its main thread cannot be read"
                                                       : lua->misfit(memory, state.main_thread);
    if (why_not != nullptr) state.misfit = why_not;
    state.collector = lua->collector(memory, G);
    for (const auto& [name, offset] : lua->found_fields())
      state.fields.emplace_back(name, offset == no_field ? std::nullopt : std::optional<std::int64_t>(offset));
  }
  std::ranges::sort(facts, {}, &StateFacts::G);
  return facts;
}

namespace {

InterpreterFacts::Execute execute_facts(const StackReader& reader, const Module* module,
                                        const Unwinder::Range& execute) {
  std::vector<std::byte> code(execute.end - execute.start);
  const bool read = module != nullptr && module->read(execute.start, code);
  const std::optional<Symbol> symbol = module != nullptr ? module->symbol(execute.start) : std::nullopt;
  return {address_text(reader, execute.start), code.size(), read ? interpreter_score(code) : 0,
          symbol ? printable(symbol->name) : ""};
}

}  // namespace

std::vector<InterpreterFacts> interpreter_facts(const StackReader& reader) {
  std::vector<InterpreterFacts> facts;
  for (const NativeCode::VmImage& image : reader.native_code().vm_images()) {
    const Module* const module = reader.modules().find(image.start);
    InterpreterFacts& one = facts.emplace_back();
    one.start = image.start;
    if (module != nullptr) one.module = printable(module->name());
    if (image.vm)
      one.vm = {
          address_text(reader, image.vm->start), address_text(reader, image.vm->end), image.vm->frame_size,
          std::string(image.vm->also_saved),     image.vm->sequences.size(),          image.vm->trace_exit.has_value()};
    for (const Unwinder::Range& execute : image.executes)
      one.executes.push_back(execute_facts(reader, module, execute));
    const auto known = std::ranges::find_if(image.collectors,
                                            [](const CollectorCode& collector) { return collector.step != 0; });
    if (known != image.collectors.end()) one.collector = address_text(reader, known->step);
  }
  return facts;
}

}  // namespace luaspy
