#include "luastate/variables.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "luastate/bytecode.h"

namespace luaspy {
VariableReader::VariableReader(const Memory& memory, const ActiveState& state, const LuaWalk& walk, Names& names,
                               const ValueLimits& limits, CountingRoom& room)
    : memory_(memory),
      lua_(room.lua(memory, *state.lua, state.G)),
      L_(state.L),
      walk_(walk),
      names_(names),
      limits_(limits),
      values_(memory, {L_, state.G, &lua_}, names, limits, room),
      trace_(trace_part(memory, *state.lua, L_, walk)) {}

TracePart trace_part(const Memory& memory, const Lua& lua, Address L, const LuaWalk& walk) {
  TracePart part;
  for (const LuaCall& call : walk.calls) {
    if (call.on_trace) part.base = call.ci;
  }
  if (part.base != 0) part.limit = lua.stack_of(memory, L).second;
  return part;
}

CallVariables VariableReader::variables(std::size_t index, Address pc) {
  CallVariables result;
  const LuaCall& call = walk_.calls[index];
  if (!call.is_lua()) {
    result.not_known = walk_.relocated ? "the stack is being moved" : std::string_view();
    if (result.not_known.empty()) add_slots(Variable::Kind::temporary, "(C temporary)", c_slots(index), result);
    return result;
  }
  const Prototype* const prototype = names_.prototype(lua_, call);
  result.not_known = prototype == nullptr ? "the function is not readable" : why_no_locals(lua_, walk_, call, pc);
  if (prototype != nullptr && result.not_known.empty()) add_locals(call, *prototype, call.index_of(pc), result);
  add_upvalues(call, prototype, result);
  return result;
}

CallVariables VariableReader::yielded() {
  CallVariables result;
  const LuaCall* const caller = walk_.calls.empty() || walk_.calls[0].is_lua() ? nullptr : walk_.caller_of(0);
  if (caller == nullptr || !caller->is_lua() || !caller->has_pc(caller->saved_pc)) return result;
  const Prototype* const prototype = names_.prototype(lua_, *caller);
  const auto pc = static_cast<std::size_t>(caller->index_of(caller->saved_pc));
  if (prototype == nullptr || pc >= prototype->code.size()) return result;
  const std::optional<int> called = called_register(prototype->bytecode, prototype->code[pc]),
                           passed = passed_arguments(prototype->bytecode, prototype->code[pc]);
  if (!called || !passed) return result;
  const Address first = lua_.first_argument(memory_, *caller, *called, walk_.calls[0]);
  if (first == 0) return result;
  add_slots(Variable::Kind::argument, "(C argument)", {first, static_cast<std::uint64_t>(*passed)}, result);
  // A collection has cleared them since, or they were nil.
  std::erase_if(result.variables, [](const Variable& variable) { return variable.value == "nil"; });
  return result;
}

std::string_view why_no_locals(const Lua& lua, const LuaWalk& walk, const LuaCall& call, Address pc) {
  if (walk.relocated) return "the stack is being moved";
  if (call.on_trace || call.func == 0) return "in machine code";
  if (!call.has_pc(pc) || (lua.prepares_parameters(call) && call.index_of(pc) == 0)) return "being called";
  return {};
}

bool VariableReader::add(Variable::Kind kind, std::string name, Address slot, CallVariables& result) {
  if (result.variables.size() >= limits_.variables) return false;
  const std::optional<Value> value = lua_.read_value(memory_, slot);
  result.variables.push_back({kind, std::move(name), value ? values_.text(*value) : "?"});
  return true;
}

// Bytecode without debug information still has the number of parameters.
void VariableReader::add_locals(const LuaCall& call, const Prototype& prototype, int pc, CallVariables& result) {
  const Address base = lua_.first_local(memory_, call);
  if (base == 0) {
    result.not_known = "being called";
    return;
  }
  const auto slot = [&](int number) { return base + static_cast<std::uint64_t>(number) * lua_.slot_size(); };
  const int parameters = prototype.parameters;
  bool has_room = true;
  int number = visit_locals(prototype, pc, [&](const LocalVariable& local, int its) {
    return has_room = add(its < parameters ? Variable::Kind::parameter : Variable::Kind::local, printable(local.name),
                          slot(its), result);
  });
  if (!has_room) return;
  for (; number < parameters; ++number) {
    if (!add(Variable::Kind::parameter, fmt::format("(parameter) {}", number + 1), slot(number), result)) return;
  }
  if (!call.is_vararg()) return;
  add_slots(Variable::Kind::vararg, "(vararg)", lua_.varargs(memory_, call, static_cast<std::uint64_t>(parameters)),
            result);
}

void VariableReader::add_slots(Variable::Kind kind, std::string_view name, Slots slots, CallVariables& result) {
  for (std::uint64_t i = 0; i < slots.count; ++i) {
    if (i == limits_.entries) {
      result.variables.push_back({kind, std::string(name), fmt::format("…({} more)", slots.count - i)});
      return;
    }
    if (!add(kind, fmt::format("{} {}", name, i + 1), slots.first + i * lua_.slot_size(), result)) return;
  }
}

Slots VariableReader::c_slots(std::size_t index) const {
  const bool innermost = index == 0;
  if (walk_.calls[index].func == 0 || (innermost && walk_.innermost_dropped != 0) ||
      (!innermost && walk_.left_out != 0 && index == walk_.cut_at))
    return {};
  return lua_.c_slots(memory_, L_, walk_, index);
}

void VariableReader::add_upvalues(const LuaCall& call, const Prototype* prototype, CallVariables& result) {
  if (call.closure == 0) return;
  const std::size_t count = lua_.upvalue_count(memory_, call.closure);
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_named = prototype != nullptr && i < prototype->upvalues.size();
    std::string name = is_named ? printable(prototype->upvalues[i]) : fmt::format("(upvalue) {}", i + 1);
    const Address slot = lua_.upvalue_slot(memory_, call.closure, i);
    if (trace_.has(slot))  // of an open upvalue
      result.variables.push_back({Variable::Kind::upvalue, std::move(name), "not known: in machine code"});
    else if (!add(Variable::Kind::upvalue, std::move(name), slot, result)) return;
    if (result.variables.size() >= limits_.variables) return;
  }
}

}  // namespace luaspy
