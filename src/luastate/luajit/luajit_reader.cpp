#include "luastate/luajit/luajit_reader.h"

#include <algorithm>
#include <array>

namespace luaspy {
namespace {

// The registers and the words of the innermost frames, without an allocation: it is asked for in
// every stop.
struct InnermostWords {
  InnermostWords(const Registers& registers, const Locator::ThreadStack& stack) {
    for (unsigned number = 0; number < rip; ++number) {
      if (registers.knows(number) && number != rsp) words[count++] = registers[number];
    }
    for (std::size_t i = 0; i < most_words && 8 * i + 8 <= stack.bytes.size(); ++i)
      words[count++] = load<Address>(stack.bytes, 8 * i);
  }
  std::span<const Address> span() const { return std::span(words).first(count); }

  static constexpr std::size_t most_words = 128;
  std::array<Address, register_count + most_words> words;
  std::size_t count = 0;
};

// The functions that a Lua stack refers to, those that are being called among them, with the
// instructions that they were called by.
void touch_functions(const Memory& memory, const LuajitLayout& layout, Address bottom, Address top,
                     const KnownFunctions& known) {
  std::array<std::uint64_t, 64> slots;
  for (Address at = bottom; at < top; at += sizeof slots) {
    const auto part = std::span(slots).first(std::min<Address>(slots.size(), (top - at + 7) / 8));
    if (!memory.read(at, std::as_writable_bytes(part))) return;
    for (const std::uint64_t slot : part) {
      // With 32-bit references the upper half is a link where the function is called, and of other
      // values a type, which is negative.
      constexpr std::uint64_t function_type = ~std::uint32_t{luajit::gct_function};
      const bool may_be_called = slot >> 32 == function_type || slot >> 63 == 0;
      const Address function = layout.gc64     ? object_of(layout, slot, luajit::gct_function)
                               : may_be_called ? slot & 0xffffffff
                                               : 0;
      if (!plausible_pointer(function) || known.has(function)) continue;
      memory.touch(function, layout.fn_f + 8u);
      const Address pc = read_ref(memory, layout, function + layout.fn_pc).value_or(0);
      if (plausible_pointer(pc, 4)) memory.touch(pc - layout.pt_size, layout.pt_size + 4u);
    }
  }
}

}  // namespace

// Of the innermost state.
void LuajitReader::read_fields(const Memory& stopped, const Registers& registers, const Locator::ThreadStack& stack,
                               const Activation& activation, State& state) {
  const LuajitLayout& layout = *activation.lua.luajit;
  const Address L = activation.L, G = activation.G;
  state.moved = {};
  if (!stack_stands(stopped, layout, L))
    state.moved = find_moved_stack(stopped, layout, L, InnermostWords(registers, stack).span());
  state.vmstate = stopped.get<std::int32_t>(G + layout.G_vmstate).value_or(0);
  const bool is_current = read_ref(stopped, layout, G + layout.G_cur_L) == L;
  const Address jit_base = read_ref(stopped, layout, G + layout.G_jit_base).value_or(0);
  state.jit_base = is_current ? jit_base : 0;
  state.has_jit_base = jit_base != 0;
}

// The whole Lua stack, as far as it is in use. L->base lags behind the interpreter's BASE, which is
// in rdx, or around some calls in rbp (vm_x64.dasc), and a trace's is in jit_base. Which of them
// counts, only the native frames tell.
void LuajitReader::touch(const Memory& stopped, const Registers& registers, const Locator::ThreadStack& stack,
                         const Activation& activation, const WalkLimits& limits, const KnownFunctions& known) {
  constexpr Address beyond = 8 * 256;  // a function has up to 250 slots (lj_def.h, LJ_MAX_SLOTS)
  constexpr Address most = 256 << 10;  // a deeper stack is walked in the stop
  const LuajitLayout& layout = *activation.lua.luajit;
  State state;
  read_fields(stopped, registers, stack, activation, state);
  const WithMovedStack memory(stopped, layout, activation.L, state.moved);
  const Address saved_base = memory.get<Address>(activation.L + layout.L_base).value_or(0);
  const Address bottom = read_ref(memory, layout, activation.L + layout.L_stack).value_or(0);
  const Address limit = bottom + 8 * Address{memory.get<std::uint32_t>(activation.L + layout.L_stacksize).value_or(0)};
  Address top = 0;
  for (const Address base : {saved_base, state.jit_base, registers[rdx], registers[rbp]}) {
    if (base >= bottom && base <= limit) top = std::max(top, base);
  }
  if (!plausible_pointer(bottom) || top == 0) return;
  if (top - bottom <= most) {
    memory.touch(bottom, std::min(top + beyond, limit) - bottom);
    touch_functions(memory, layout, bottom, top + 8, known);
    return;
  }
  memory.touch(top - beyond, 2 * beyond);
  read_cframes(memory, layout, activation.L, stack.start, stack.end(), state.cframes);
  LuaWalk walk;
  for (const Address base : {top, saved_base, state.jit_base}) {
    if (base != 0) walk_luajit(memory, layout, activation.L, state.cframes, {base, 0, {}}, limits, walk);
  }
}

void LuajitReader::read(const Memory& stopped, const Memory& objects, const Registers& registers,
                        const Locator::ThreadStack& stack, const Activation& activation, bool innermost, State& state) {
  const LuajitLayout& layout = *activation.lua.luajit;
  const Address L = activation.L;
  state = {std::move(state.cframes)};
  if (innermost) read_fields(stopped, registers, stack, activation, state);
  const WithMovedStack memory(objects, layout, L, state.moved);
  read_cframes(memory, layout, L, stack.start, stack.end(), state.cframes);
  state.saved_base = memory.get<Address>(L + layout.L_base).value_or(0);
  state.saved_pc = state.cframes.empty() ? 0
                                         : read_ref(memory, layout, state.cframes[0] + layout.cframe_PC).value_or(0);
  if (state.saved_pc == L) state.saved_pc = 0;  // vm_x64.dasc: "any value outside of bytecode is ok"
  if (state.jit_base != 0 && !is_base(memory, layout, activation.L, state.jit_base, 0)) state.jit_base = 0;
}

const Trace* LuajitReader::trace_at(const Activation& activation, Address pc) {
  return traces_.find(*activation.lua.luajit, activation.G, pc);
}

void LuajitReader::refine(const std::vector<NativeFrame>& natives, const Registers& registers,
                          const NativeFunctions& functions, const Memory& objects, const Activation& activation,
                          bool innermost, const WalkLimits& limits, State& state, LuaWalk& walk) {
  const LuajitLayout& layout = *activation.lua.luajit;
  const Address L = activation.L;
  const WithMovedStack both(objects, layout, L, state.moved);
  const auto is = [&](Address base, Address pc) { return is_base(both, layout, L, base, pc); };
  // The native frame on top of this state's innermost C frame: of the VM, or of a trace.
  const auto vm = std::ranges::find_if(natives, [&](const NativeFrame& frame) {
    return functions.executes_lua(frame) && (state.cframes.empty() || frame.cfa > state.cframes[0]);
  });
  LuajitTop top;
  InlinedCode code;
  std::vector<InlinedFrame> entering;
  constexpr Address all = 1;
  Address trace_base = 0;  // what lies above it, machine code may have in registers; 0: nothing
  const Address rdx_base = registers[rdx], rbx_pc = registers[rbx];
  const bool in_vm = innermost && vm != natives.end() && vm == natives.begin() && !vm->in_trace;
  // vm_x64.dasc, ->vm_exit_interp: BASE and PC are the interpreter's again before jit_base is 0. Of
  // what runs on behalf of machine code, nothing else has its sp at the C frame.
  const bool leaves_trace = in_vm && !state.cframes.empty() && vm->sp == state.cframes[0] && is(rdx_base, rbx_pc);
  if (innermost && !leaves_trace) {
    const VmState said = vm_state_said(activation, state);
    const bool on_trace = state.has_jit_base || said == VmState::machine_code || (vm != natives.end() && vm->in_trace);
    if (on_trace) trace_base = state.jit_base != 0 ? state.jit_base : all;
    else if (said == VmState::exiting) trace_base = state.saved_base;
  }
  if (innermost && state.jit_base != 0 && !leaves_trace) {
    top.base = state.jit_base;
    const Trace* trace = nullptr;
    if (vm != natives.end() && vm->in_trace) trace = traces_.find(layout, activation.G, vm->lookup);
    else if (state.vmstate > 0) trace = traces_.numbered(layout, activation.G, static_cast<unsigned>(state.vmstate));
    if (trace != nullptr) {
      state.trace = *trace;
      const Address at = vm != natives.end() && trace->contains(vm->lookup) ? vm->lookup : trace->mcode;
      code = traces_.decode(activation.G, L, *trace, at, state.jit_base, both);
      top = {code.base, code.pc, code.frames};
      if (!is(top.base, 0) && code.frames.empty()) top = {state.jit_base, 0, {}};
    }
  } else if (in_vm) {
    top = interpreter_top(both, layout, L, rdx_base, rbx_pc, state.saved_pc, entering);
    if (top.base == 0 && is(registers[rbp], rbx_pc))
      top = {registers[rbp], rbx_pc, {}};  // vm_x64.dasc keeps BASE in rbp around some calls
  } else if (innermost && leaving_trace(activation, state, natives, functions, both, code)) {
    top = {code.base, code.pc, code.frames};
    trace_base = state.saved_base;
  } else if (vm != natives.end()) {
    const Address pc = vm->registers[rbx], base = vm->registers[rbp];
    if (is(state.saved_base, pc)) top = {state.saved_base, pc, {}};
    else if (innermost && is(base, pc)) top = {base, pc, {}};
  }
  if (top.base == 0) {
    if (is(state.saved_base, rbx_pc) && innermost) top = {state.saved_base, rbx_pc, {}};
    else if (is(state.saved_base, state.saved_pc)) top = {state.saved_base, state.saved_pc, {}};
    else top = {state.saved_base, 0, {}};
  }
  walk_luajit(both, layout, L, state.cframes, top, limits, walk);
  walk.relocated = state.moved.stack != 0;
  if (state.trace.object != 0 && !walk.calls.empty()) walk.calls[0].near = walk.calls[0].is_lua;
  if (trace_base != 0) mark_on_trace(trace_base, walk);
}

// A trace works on the frame that it was entered in and on those that it has inlined above it, and
// writes their slots when it is left (lj_snap.c, lj_snap_restore). It never goes beyond its C
// frame.
void LuajitReader::mark_on_trace(Address from, LuaWalk& walk) {
  for (LuaCall& call : walk.calls) {
    call.on_trace = call.ci + 8 >= from && call.owner == walk.calls[0].owner;
  }
}

VmState LuajitReader::vm_state_said(const Activation& activation, const State& state) {
  // lj_obj.h: ~LJ_VMST_INTERP and so on.
  constexpr VmState stock[] = {VmState::interpreting, VmState::c,          VmState::collecting, VmState::exiting,
                               VmState::recording,    VmState::optimising, VmState::assembling};
  constexpr VmState more[] = {VmState::interpreting, VmState::interpreting, VmState::c,         VmState::c,
                              VmState::collecting,   VmState::exiting,      VmState::recording, VmState::optimising,
                              VmState::assembling};
  const bool more_states = activation.lua.luajit->more_vmstates;
  const auto number = static_cast<std::size_t>(~std::int64_t{state.vmstate});
  if (state.vmstate >= 0) return VmState::machine_code;
  return more_states                 ? (number < std::size(more) ? more[number] : VmState::none)
         : number < std::size(stock) ? stock[number]
                                     : VmState::none;
}

// lj_trace.c, lj_trace_exit: it writes to the stack what the trace had inlined (trace_exit_cp,
// called by lj_vm_cpcall), then SAVE_PC. Until then L->base is what jit_base was. False if that is
// not where the thread is.
bool LuajitReader::leaving_trace(const Activation& activation, const State& state,
                                 const std::vector<NativeFrame>& natives, const NativeFunctions& functions,
                                 const Memory& memory, InlinedCode& code) {
  const auto is_vm = [&](const NativeFrame& frame) { return functions.executes_lua(frame); };
  auto vm = std::ranges::find_if(natives, is_vm);
  bool restores = false;
  if (vm != natives.end() && functions.trace_exit(*vm) == nullptr)
    restores = true, vm = std::find_if(std::next(vm), natives.end(), is_vm);
  const TraceExit* const exit = vm != natives.end() ? functions.trace_exit(*vm) : nullptr;
  if (exit == nullptr || vm->cfa > activation.boundary + 4096 ||
      (restores && vm_state_said(activation, state) != VmState::exiting))
    return false;
  const Address dispatch = vm->registers[r14];
  const auto parent = memory.get<std::uint32_t>(dispatch + static_cast<Address>(std::int64_t{exit->parent}));
  const auto number = memory.get<std::uint32_t>(dispatch + static_cast<Address>(std::int64_t{exit->exitno}));
  if (!parent || !number) return false;
  const Trace* const trace = traces_.numbered(*activation.lua.luajit, activation.G, *parent);
  if (trace == nullptr) return false;
  code = traces_.at_exit(activation.G, activation.L, *trace, *number, state.saved_base, memory);
  return code.pc != 0 && (restores || code.pc - 4 != state.saved_pc);
}

VmState LuajitReader::vm_state(const std::vector<NativeFrame>& natives, const NativeFunctions& functions,
                               const Activation& activation, const State& state) {
  // The number lags behind at the edges of a trace; where the code is counts.
  const VmState said = vm_state_said(activation, state);
  const auto vm = std::ranges::find_if(natives,
                                       [&](const NativeFrame& frame) { return functions.executes_lua(frame); });
  const bool on_trace = vm != natives.end() && vm->in_trace && (state.cframes.empty() || vm->cfa > state.cframes[0]);
  if (on_trace && said != VmState::collecting) return VmState::machine_code;
  if (!on_trace && said == VmState::machine_code)
    return state.jit_base != 0 ? VmState::machine_code : VmState::interpreting;
  return said;
}

}  // namespace luaspy
