#include "luastate/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace luaspy {
namespace {

constexpr std::uint64_t most_stack_slots = 1'100'000;  // LUAI_MAXSTACK, with its error room
constexpr std::uint64_t most_puc = 16;                 // bytes of a slot

// lj_frame.h: the low bits of the inner frame's link. A function with varargs has two frames.
constexpr std::uint64_t frame_type = 7, frame_vararg = 3;

}  // namespace

VariableReader::VariableReader(const Memory& memory, const Dialect& dialect, Address G, Address L, const LuaWalk& walk,
                               Names& names, const ValueLimits& limits)
    : memory_(memory),
      dialect_(dialect),
      L_(L),
      walk_(walk),
      names_(names),
      limits_(limits),
      values_(memory, dialect, G, L, names, limits) {
  if (dialect.luajit == nullptr) return;
  for (const LuaCall& call : walk.calls) {
    if (call.on_trace) trace_base_ = call.ci;
  }
  const LuajitLayout& layout = *dialect.luajit;
  const Address stack = read_ref(memory, layout, L + layout.L_stack).value_or(0);
  stack_limit_ = stack + 8 * Address{memory.get<std::uint32_t>(L + layout.L_stacksize).value_or(0)};
}

CallVariables VariableReader::variables(std::size_t index, Address pc) {
  CallVariables result;
  const LuaCall& call = walk_.calls[index];
  if (!call.is_lua) {
    result.not_known = walk_.relocated ? "the stack is being moved" : std::string_view();
    if (result.not_known.empty()) add_slots(Variable::Kind::argument, "(C argument)", c_arguments(index), result);
    return result;
  }
  const Prototype* const prototype = names_.prototype(dialect_, call);
  result.not_known = prototype == nullptr ? "the function is not readable" : why_not(call, pc);
  if (result.not_known.empty()) add_locals(call, prototype, call.index_of(pc), result);
  add_upvalues(call, prototype, result);
  return result;
}

// At its first instruction, a function with varargs moves its parameters (OP_VARARGPREP of 5.4 and
// later, ltm.c, luaT_adjustvarargs; BC_FUNCV), and LuaJIT's functions create the parameters that
// were not given (vm_x64.dasc, BC_FUNCF). So parameters may still be at the old place, or not exist
// yet.
std::string_view VariableReader::why_not(const LuaCall& call, Address pc) const {
  if (walk_.relocated) return "the stack is being moved";
  if (call.on_trace || call.func == 0) return "in machine code";
  const bool prepares = dialect_.luajit != nullptr || (call.is_vararg && dialect_.puc->ci_nextraargs != no_field);
  if (!call.has_pc(pc) || (prepares && call.index_of(pc) == 0)) return "being called";
  return {};
}

bool VariableReader::add(Variable::Kind kind, std::string name, Address slot, CallVariables& result) {
  if (result.variables.size() >= limits_.variables) return false;
  const std::optional<Value> value = read_value(memory_, dialect_, slot);
  result.variables.push_back({kind, std::move(name), value ? values_.text(*value) : "?"});
  return true;
}

// lfunc.c, luaF_getlocalname; lj_debug.c, debug_varname: the n-th variable that is active at `pc`
// is in register n. Bytecode without debug information still has the number of parameters.
void VariableReader::add_locals(const LuaCall& call, const Prototype* prototype, int pc, CallVariables& result) {
  const Address base = dialect_.luajit != nullptr ? call.ci + 8 : base_puc(call);
  const auto parameters = static_cast<std::uint64_t>(prototype->parameters);
  if (base == 0) {
    result.not_known = "being called";
    return;
  }
  std::uint64_t number = 0;
  const auto slot = [&] { return base + number * slot_size(dialect_); };
  for (const LocalVariable& local : prototype->locals) {
    if (local.start_pc > pc) break;
    if (pc >= local.end_pc) continue;
    if (!add(number < parameters ? Variable::Kind::parameter : Variable::Kind::local, printable(local.name), slot(),
             result))
      return;
    ++number;
  }
  for (; number < parameters; ++number) {
    if (!add(Variable::Kind::parameter, fmt::format("(parameter) {}", number + 1), slot(), result)) return;
  }
  if (!call.is_vararg) return;
  add_slots(Variable::Kind::vararg, "(vararg)",
            dialect_.luajit != nullptr ? varargs_luajit(call, parameters) : varargs_puc(call, parameters), result);
}

void VariableReader::add_slots(Variable::Kind kind, std::string_view name, Slots slots, CallVariables& result) {
  for (std::uint64_t i = 0; i < slots.count; ++i) {
    if (i == limits_.entries) {
      result.variables.push_back({kind, std::string(name), fmt::format("…({} more)", slots.count - i)});
      return;
    }
    if (!add(kind, fmt::format("{} {}", name, i + 1), slots.first + i * slot_size(dialect_), result)) return;
  }
}

Address VariableReader::base_puc(const LuaCall& call) const {
  const Layout& layout = *dialect_.puc;
  if (layout.ci_base == no_field) return call.func + most_puc;
  const Address base = memory_.get<Address>(call.ci + layout.ci_base).value_or(0);
  return base > call.func && (base - call.func) % most_puc == 0 && base - call.func <= most_stack_slots * most_puc
             ? base
             : 0;
}

VariableReader::Slots VariableReader::varargs_puc(const LuaCall& call, std::uint64_t parameters) const {
  const Layout& layout = *dialect_.puc;
  if (layout.ci_nextraargs == no_field) {
    const std::uint64_t below = (base_puc(call) - call.func) / most_puc - 1;
    return below > parameters ? Slots{call.func + most_puc * (1 + parameters), below - parameters} : Slots{};
  }
  const std::uint8_t kind = memory_.get<std::uint8_t>(call.proto + layout.p_is_vararg).value_or(0);
  const std::int32_t count = memory_.get<std::int32_t>(call.ci + layout.ci_nextraargs).value_or(0);
  if ((kind & layout.has_varargs) == 0 || count <= 0 || static_cast<std::uint64_t>(count) > most_stack_slots) return {};
  return {call.func - most_puc * static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(count)};
}

// The slot where the function was called. If the function was moved, this is below its varargs.
Address VariableReader::func_before_varargs_puc(const LuaCall& call) const {
  if (!call.is_lua || !call.is_vararg || dialect_.puc->ci_nextraargs == no_field || call.index_of(call.saved_pc) == 0)
    return call.func;
  const std::uint64_t parameters = memory_.get<std::uint8_t>(call.proto + dialect_.puc->p_numparams).value_or(0);
  const std::uint8_t kind = memory_.get<std::uint8_t>(call.proto + dialect_.puc->p_is_vararg).value_or(0);
  if ((kind & dialect_.puc->has_varargs) == 0) return call.func;
  return call.func - most_puc * (1 + parameters + varargs_puc(call, parameters).count);
}

Address VariableReader::outer_frame(Address frame) const {
  const LuajitLayout& layout = *dialect_.luajit;
  const std::optional<std::uint64_t> slot = memory_.get<std::uint64_t>(frame);
  if (!slot) return 0;
  const std::uint64_t link = layout.gc64 ? *slot : *slot >> 32;
  const std::uint64_t distance = link & ~frame_type;
  return (link & frame_type) == frame_vararg && distance < most_stack_slots * 8 && distance < frame ? frame - distance
                                                                                                    : 0;
}

VariableReader::Slots VariableReader::varargs_luajit(const LuaCall& call, std::uint64_t parameters) const {
  const Address outer = outer_frame(call.ci);
  if (outer == 0) return {};
  const std::uint64_t between = (call.ci - outer) / 8,
                      taken = parameters + (dialect_.luajit->gc64 ? 2 : 1);  // lj_debug.c, debug_localname
  return between > taken ? Slots{outer + 8 * (1 + parameters), between - taken} : Slots{};
}

// ldebug.c, luaG_findlocal: a C function's part of the stack ends at L->top, or where the next
// function begins. LuaJIT's fast functions in assembler do not set L->top.
VariableReader::Slots VariableReader::c_arguments(std::size_t index) const {
  const LuaCall& call = walk_.calls[index];
  const bool innermost = index == 0;
  if (call.func == 0 || (innermost && walk_.innermost_dropped != 0) ||
      (!innermost && walk_.left_out != 0 && index == walk_.cut_at))
    return {};
  Address first = 0, end = 0;
  if (dialect_.luajit != nullptr) {
    constexpr std::uint8_t ffid_c = 1;  // lj_obj.h, FF_C
    const LuajitLayout& layout = *dialect_.luajit;
    first = call.ci + 8;
    if (innermost && memory_.get<std::uint8_t>(call.closure + layout.fn_ffid) != ffid_c &&
        memory_.get<Address>(L_ + layout.L_base) != first)
      return {};
    const Address inner = innermost ? 0 : walk_.calls[index - 1].ci;
    const Address below = innermost ? 0 : outer_frame(inner);
    end = innermost ? memory_.get<Address>(L_ + layout.L_top).value_or(0)
                    : (below != 0 ? below : inner) - (layout.gc64 ? 8 : 0);
    if (!innermost && walk_.calls[index - 1].func == 0) return {};
  } else {
    first = call.func + most_puc;
    end = innermost ? memory_.get<Address>(L_ + dialect_.puc->L_top).value_or(0)
                    : func_before_varargs_puc(walk_.calls[index - 1]);
  }
  const std::size_t size = slot_size(dialect_);
  if (end <= first || (end - first) % size != 0 || (end - first) / size > most_stack_slots) return {};
  return {first, (end - first) / size};
}

// For open upvalues, which are stack slots.
bool VariableReader::is_on_trace(Address slot) const {
  return trace_base_ != 0 && slot >= trace_base_ && slot < stack_limit_;
}

void VariableReader::add_upvalues(const LuaCall& call, const Prototype* prototype, CallVariables& result) {
  if (call.closure == 0) return;
  const bool is_luajit = dialect_.luajit != nullptr;
  const Address count_at = call.closure + (is_luajit ? dialect_.luajit->fn_nupvalues : dialect_.puc->closure_nupvalues);
  const Address references = call.closure + (is_luajit ? dialect_.luajit->fn_uvptr : dialect_.puc->closure_upvals);
  const std::size_t reference_size = is_luajit ? dialect_.luajit->ref_size : 8;
  const std::size_t count = memory_.get<std::uint8_t>(count_at).value_or(0);
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_named = prototype != nullptr && i < prototype->upvalues.size();
    std::string name = is_named ? printable(prototype->upvalues[i]) : fmt::format("(upvalue) {}", i + 1);
    Address slot = 0;
    if (is_luajit) {
      const Address upvalue = read_ref(memory_, *dialect_.luajit, references + i * reference_size).value_or(0);
      if (plausible_pointer(upvalue))
        slot = read_ref(memory_, *dialect_.luajit, upvalue + dialect_.luajit->uv_v).value_or(0);
    } else {
      const Address upvalue = memory_.get<Address>(references + i * reference_size).value_or(0);
      if (plausible_pointer(upvalue)) slot = memory_.get<Address>(upvalue + dialect_.puc->upval_v).value_or(0);
    }
    if (is_luajit && is_on_trace(slot))
      result.variables.push_back({Variable::Kind::upvalue, std::move(name), "not known: in machine code"});
    else if (!add(Variable::Kind::upvalue, std::move(name), slot, result)) return;
    if (result.variables.size() >= limits_.variables) return;
  }
}

}  // namespace luaspy
