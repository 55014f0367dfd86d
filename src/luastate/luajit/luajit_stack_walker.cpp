#include "luastate/luajit/luajit_stack_walker.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "luastate/luajit/innermost_frame.h"
#include "luastate/luajit/luajit_functions.h"
#include "luastate/prototype.h"

namespace luaspy {
namespace {

// The registers and the words of the innermost frames. Without an allocation, since every stop
// needs them.
struct InnermostWords {
  InnermostWords(const Registers& registers, const Locator::ThreadStack& stack) {
    for (unsigned number = 0; number < Registers::most; ++number) {
      const bool general = number != Registers::pc_number && number != Registers::sp_number;
      if (general && registers.knows(number)) words[count++] = registers[number];
    }
    for (std::size_t i = 0; i < most_words && 8 * i + 8 <= stack.bytes.size(); ++i)
      words[count++] = load<Address>(stack.bytes, 8 * i);
  }
  std::span<const Address> span() const { return std::span(words).first(count); }

  static constexpr std::size_t most_words = 128;
  std::array<Address, Registers::most + most_words> words;
  std::size_t count = 0;
};

// Touches the functions that a Lua stack refers to, including those being called, and their GCproto
// with its first instruction. The stack grows upwards: the last ones are the innermost.
void prefetch_functions(const Memory& memory, const LuajitLayout& layout, Address bottom, Address top,
                        const KnownFunctions& known, ProtoList& protos) {
  std::array<std::uint64_t, 64> slots;
  std::array<Address, 128> last_found{};
  std::size_t found = 0;
  for (Address at = bottom; at < top; at += sizeof slots) {
    const auto part = std::span(slots).first(std::min<Address>(slots.size(), (top - at + 7) / 8));
    if (!memory.read(at, std::as_writable_bytes(part))) return;
    for (const std::uint64_t slot : part) {
      // With 32-bit references, the upper half is a link if the function is called. For other
      // values it is a type, which is negative.
      constexpr std::uint64_t function_type = ~std::uint32_t{luajit::gct_function};
      const bool may_be_called = slot >> 32 == function_type || slot >> 63 == 0;
      const Address function = layout.gc64     ? object_of(layout, slot, luajit::gct_function)
                               : may_be_called ? slot & 0xffffffff
                                               : 0;
      if (!plausible_pointer(function) || known.has(function)) continue;
      memory.prefetch(function, layout.fn_f + 8u);
      const Address pc = read_ref(memory, layout, function + layout.fn_pc).value_or(0);
      if (!plausible_pointer(pc, 4)) continue;
      const Address proto = pc - layout.pt_size;
      memory.prefetch(proto, layout.pt_size + 4u);
      if (found == 0 || last_found[(found - 1) % last_found.size()] != proto)
        last_found[found++ % last_found.size()] = proto;
    }
  }
  for (std::size_t i = 0; i < std::min(found, last_found.size()); ++i)
    protos.add(last_found[(found - 1 - i) % last_found.size()]);
}

// The functions that a trace has inlined are not on the Lua stack: they are among its constants.
// Only the trace keeps them alive, so they are touched in the stop. `last` identifies the trace of
// the look before: its functions have their names by now.
void prefetch_inlined(const Memory& memory, const LuajitLayout& layout, Address trace, const KnownFunctions& known,
                      ProtoList& protos, std::atomic<std::uint64_t>& last) {
  constexpr std::uint32_t most = 256;        // constants; those that were made last come first
  constexpr int most_functions = 32;         // of the 64 that a ProtoList takes
  constexpr std::uint32_t ir_bias = 0x8000;  // REF_BIAS (lj_ir.h): constants lie below
  std::array<std::byte, 128> bytes;
  const auto fields = std::span(bytes).first(layout.T_size);
  if (!plausible_pointer(trace) || !memory.read(trace, fields) ||
      load<std::uint8_t>(fields, layout.T_gct) != luajit::gct_trace)
    return;
  const auto ir = load<Address>(fields, layout.T_ir);
  const auto first = load<std::uint32_t>(fields, layout.T_nk);
  std::uint64_t identity = trace;
  for (const std::uint64_t part :
       {std::uint64_t{first}, ir, load<std::uint64_t>(fields, layout.T_mcode),
        std::uint64_t{load<std::uint32_t>(fields, layout.T_szmcode)}, load_ref(layout, fields, layout.T_startpt)})
    mix(identity, part);
  if (last.exchange(identity) == identity || !plausible_pointer(ir) || first >= ir_bias) return;
  protos.add(load_ref(layout, fields, layout.T_startpt));
  std::array<std::uint64_t, most> constants;
  const auto part = std::span(constants).first(std::min(most, ir_bias - first));
  if (!memory.read(ir + 8 * Address{first}, std::as_writable_bytes(part))) return;
  constexpr std::uint64_t word_bits = 32, opcode_shift = 40;  // lj_ir.h, IRIns
  int functions = 0;
  for (std::size_t i = 0; i < part.size() && functions < most_functions; ++i) {
    if ((part[i] >> opcode_shift & 0xff) != kgc_opcode(layout)) continue;
    const Address object = !layout.gc64          ? part[i] & ((std::uint64_t{1} << word_bits) - 1)
                           : i + 1 < part.size() ? part[i + 1]
                                                 : 0;
    if (!plausible_pointer(object) || known.has(object) ||
        memory.get<std::uint8_t>(object + layout.fn_gct) != luajit::gct_function)
      continue;
    ++functions;
    memory.prefetch(object, layout.fn_f + 8u);
    const Address pc = read_ref(memory, layout, object + layout.fn_pc).value_or(0);
    if (!plausible_pointer(pc, 4)) continue;
    memory.prefetch(pc - layout.pt_size, layout.pt_size + 4u);
    protos.add(pc - layout.pt_size);
  }
}

}  // namespace

// For the innermost state.
void LuajitStackWalker::read_fields(const Memory& stopped, const Registers& registers,
                                    const Locator::ThreadStack& stack, const ActiveState& activation,
                                    LuajitState& state) {
  const LuajitLayout& layout = luajit_layout_of(activation);
  const Address L = activation.L, G = activation.G;
  state.moved = {};
  if (!stack_stands(stopped, layout, L))
    state.moved = find_moved_stack(stopped, layout, L, InnermostWords(registers, stack).span());
  state.vmstate = stopped.get<std::int32_t>(G + layout.G_vmstate).value_or(0);
  const TraceBase now = read_trace_base(stopped, layout, G);
  state.jit_base = now.L == L ? now.base : 0;
  state.has_jit_base = now.base != 0;
}

// L->base is often older than the interpreter's BASE, which is in a register; a trace's base is in jit_base. Only the
// native frames show which of them is right.
LuajitStackWalker::Bases LuajitStackWalker::bases_of(const Memory& memory, const Registers& registers,
                                                     const ActiveState& activation, const LuajitState& state) const {
  const LuajitLayout& layout = luajit_layout_of(activation);
  const Address L = activation.L;
  Bases result;
  result.bottom = read_ref(memory, layout, L + layout.L_stack).value_or(0);
  result.limit = result.bottom + 8 * Address{memory.get<std::uint32_t>(L + layout.L_stacksize).value_or(0)};
  const VmRegisters vm(machine_.luajit, registers);
  result.bases = {vm.base, vm.c_base, memory.get<Address>(L + layout.L_base).value_or(0), state.jit_base};
  std::ranges::sort(result.bases, std::greater());
  Address last = 0;
  for (Address& base : result.bases) {
    const Address its = base;
    if (its == std::exchange(last, its) || its < result.bottom || its > result.limit) base = 0;
    result.top = std::max(result.top, base);
  }
  return result;
}

void LuajitStackWalker::likely_calls(const Locator::StoppedThread& thread, const ActiveState& activation,
                                     const WalkLimits& limits, LuaWalk& walk) const {
  walk.clear();
  const LuajitLayout& layout = luajit_layout_of(activation);
  LuajitState state;
  read_fields(thread.memory, thread.registers, thread.stack, activation, state);
  const WithMovedStack memory(thread.memory, layout, activation.L, state.moved);
  const Bases bases = bases_of(memory, thread.registers, activation, state);
  if (!plausible_pointer(bases.bottom) || bases.top == 0) return;
  read_cframes(memory, layout, activation.L, thread.stack.start, thread.stack.end(), state.cframes);
  LuaWalk from;
  for (const Address base : bases.bases) {
    constexpr Address slot = 8;
    const auto has_base = [&](const LuaCall& call) { return call.ci + slot == base; };
    if (base == 0 || std::ranges::any_of(walk.calls, has_base)) continue;
    if (walk.calls.empty()) {
      walk_luajit({memory, layout, activation.L}, state.cframes, {base, 0, {}}, limits, walk);
      continue;
    }
    walk_luajit({memory, layout, activation.L}, state.cframes, {base, 0, {}}, limits, from);
    walk.calls.insert(walk.calls.end(), from.calls.begin(), from.calls.end());
  }
}

// Touches the whole used part of the Lua stack.
void LuajitStackWalker::prefetch(const Locator::StoppedThread& thread, const ActiveState& activation,
                                 const WalkLimits& limits, const KnownFunctions& known, ProtoList& protos) const {
  constexpr Address beyond = 8 * 256;  // a function has up to 250 slots (lj_def.h, LJ_MAX_SLOTS)
  constexpr Address most = 256 << 10;  // a deeper stack is walked in the stop
  const Memory& stopped = thread.memory;
  const LuajitLayout& layout = luajit_layout_of(activation);
  LuajitState state;
  read_fields(stopped, thread.registers, thread.stack, activation, state);
  if (const std::uint64_t fields = exit_fields_; fields != 0) {
    stopped.prefetch(activation.G + static_cast<std::uint32_t>(fields), sizeof(std::uint32_t));
    stopped.prefetch(activation.G + (fields >> 32), sizeof(std::uint32_t));
  }
  if (const Offset place = traces_.place(); state.has_jit_base && state.vmstate > 0 && place != no_field) {
    const Address all = read_ref(stopped, layout, activation.G + place).value_or(0);
    // vmstate is outdated for a moment when a trace is left; what it names then is read in vain.
    const auto number = static_cast<Address>(state.vmstate);
    prefetch_inlined(stopped, layout, read_ref(stopped, layout, all + number * layout.ref_size).value_or(0), known,
                     protos, last_trace_);
  }
  const WithMovedStack memory(stopped, layout, activation.L, state.moved);
  const auto [bottom, limit, bases, top] = bases_of(memory, thread.registers, activation, state);
  if (!plausible_pointer(bottom) || top == 0) return;
  if (top - bottom <= most) {
    memory.prefetch(bottom, std::min(top + beyond, limit) - bottom);
    prefetch_functions(memory, layout, bottom, top + 8, known, protos);
    return;
  }
  memory.prefetch(top - beyond, 2 * beyond);
  read_cframes(memory, layout, activation.L, thread.stack.start, thread.stack.end(), state.cframes);
  LuaWalk walk;
  for (const Address base : bases) {
    if (base == 0) continue;
    walk_luajit({memory, layout, activation.L}, state.cframes, {base, 0, {}}, limits, walk);
    for (const LuaCall& call : walk.calls) {
      if (call.is_lua()) protos.add(call.proto);
    }
  }
}

void LuajitStackWalker::read(const LookMemory& look, bool innermost, const WalkLimits&, RunningState& running) {
  if (dynamic_cast<LuajitState*>(running.notes.get()) == nullptr) running.notes = std::make_unique<LuajitState>();
  auto& state = static_cast<LuajitState&>(*running.notes);
  const ActiveState& activation = running.activation;
  const LuajitLayout& layout = luajit_layout_of(activation);
  const Address L = activation.L;
  std::vector<Address> room = std::move(state.cframes);
  state = {};
  state.cframes = std::move(room);
  if (innermost) read_fields(look.stopped, look.registers, look.stack, activation, state);
  const WithMovedStack memory(look.objects, layout, L, state.moved);
  read_cframes(memory, layout, L, look.stack.start, look.stack.end(), state.cframes);
  state.saved_base = memory.get<Address>(L + layout.L_base).value_or(0);
  const auto saved_pc = [&] { return read_ref(memory, layout, state.cframes[0] + layout.cframe_PC).value_or(0); };
  state.saved_pc = state.cframes.empty() ? 0 : saved_pc();
  if (state.saved_pc == L) state.saved_pc = 0;  // vm_x64.dasc: "any value outside of bytecode is ok"
  if (state.jit_base != 0 && !is_base(memory, layout, L, state.jit_base, 0)) state.jit_base = 0;
}

const Trace* LuajitStackWalker::trace_at(const ActiveState& activation, Address pc) {
  return traces_.find(luajit_layout_of(activation), activation.G, pc);
}

void LuajitStackWalker::match_natives(RunningState& state, bool innermost, const std::vector<NativeFrame>& natives,
                                      const NativeFunctions& functions, const LookMemory& look,
                                      const WalkLimits& limits) {
  auto& luajit = static_cast<LuajitState&>(*state.notes);
  const ActiveState& activation = state.activation;
  const LuajitLayout& layout = luajit_layout_of(activation);
  const WithMovedStack memory(look.objects, layout, activation.L, luajit.moved);
  const InnermostFrame frame(machine_, traces_, {activation, innermost, luajit, memory}, {natives, functions}, look);
  if (const ExitFields& fields = frame.exit_fields(); fields.parent != 0) {
    const Address parent = fields.parent - activation.G, number = fields.number - activation.G;
    // Both are parts of one GG_State (lj_dispatch.h), which has less than 64 KiB.
    constexpr Address most = 1 << 16;
    if (parent < most && number < most) exit_fields_ = parent | number << 32;
  }
  LuaWalk& walk = state.walk;
  walk_luajit({memory, layout, activation.L}, luajit.cframes, frame.top(), limits, walk);
  walk.relocated = luajit.moved.stack != 0;
  if (luajit.trace.object != 0 && !walk.calls.empty()) walk.calls[0].near = walk.calls[0].is_lua();
  if (frame.trace_base() != 0) mark_on_trace(frame.trace_base(), walk);
}

Address LuajitStackWalker::pc(const ExecutedCall& call, Names&, const Memory&, const NativeFunctions&) {
  return call.state.walk.calls[call.call].saved_pc;  // match_natives() has set it
}

bool LuajitStackWalker::read_start(const ActiveState& activation, const Trace& trace, LuaCall& start) const {
  start = {};
  start.proto = trace.start_proto;
  return read_proto_of(live_, luajit_layout_of(activation), start);
}

// A trace works on the frame in which it was entered and on those inlined above it, and writes
// their slots when it is left (lj_snap.c, lj_snap_restore). It never goes beyond its C frame.
void LuajitStackWalker::mark_on_trace(Address from, LuaWalk& walk) {
  for (LuaCall& call : walk.calls) {
    call.on_trace = call.ci + 8 >= from && call.owner == walk.calls[0].owner;
  }
}

VmState LuajitStackWalker::vm_state(const RunningState& state, const std::vector<NativeFrame>& natives,
                                    const NativeFunctions& functions) const {
  // vmstate is outdated for a moment when a trace is entered or left, so the place of the code
  // decides.
  const auto& luajit = static_cast<const LuajitState&>(*state.notes);
  const VmState said = vm_state_said(luajit_layout_of(state.activation), luajit);
  const auto is_vm = [&](const NativeFrame& frame) { return functions.executes_lua(frame); };
  const auto vm = std::ranges::find_if(natives, is_vm);
  const bool on_trace = vm != natives.end() && vm->in_trace && (luajit.cframes.empty() || vm->cfa > luajit.cframes[0]);
  if (on_trace && said != VmState::collecting) return VmState::machine_code;
  if (!on_trace && said == VmState::machine_code)
    return luajit.jit_base != 0 ? VmState::machine_code : VmState::interpreting;
  return said;
}

}  // namespace luaspy
