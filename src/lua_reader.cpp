#include "lua_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "luastate/luajit.h"

namespace luaspy {
namespace {

// What the stop read, and where it read nothing, the memory as it is now: for objects that do not change while they live.
class StoppedThenLive : public Memory {
 public:
  StoppedThenLive(const Memory& stopped, const Memory& live) : stopped_(stopped), live_(live) {}
  bool read(Address address, std::span<std::byte> into) const override { return stopped_.read(address, into) || live_.read(address, into); }

 private:
  const Memory& stopped_;
  const Memory& live_;
};

std::vector<Address> innermost_words(const Registers& registers, const Locator::ThreadStack& stack) {
  constexpr std::size_t most_words = 128;
  std::vector<Address> words;
  for (unsigned number = 0; number < rip; ++number) {
    if (registers.knows(number) && number != rsp) words.push_back(registers[number]);
  }
  for (std::size_t i = 0; i < most_words && 8 * i + 8 <= stack.bytes.size(); ++i) words.push_back(load<Address>(stack.bytes, 8 * i));
  return words;
}

}  // namespace

void LuaReader::try_rows(std::vector<Dialect> rows) {
  locator_.forget();
  locator_.try_rows(std::move(rows));
}

void LuaReader::read(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack) {
  locator_.locate(memory, registers, stack, active_);
  if (states_.size() < active_.size()) states_.resize(active_.size());
  state_count_ = 0;
  for (const Activation& activation : active_) {
    State& state = states_[state_count_++];
    state.activation = activation;
    state.cframes.clear();
    state.jit_base = 0;
    state.moved = {};
    state.trace = {};
    if (activation.lua.puc != nullptr) walk_puc(memory, *activation.lua.puc, activation.L, limits_, state.walk);
    else read_luajit(memory, registers, stack, state, state_count_ == 1);
  }
}

// L->base lags behind the interpreter's BASE, which is in rdx (vm_x64.dasc), and a trace's is in jit_base. Which of them counts,
// only the native frames tell; the walks from each read what will be needed then.
void LuaReader::read_luajit(const Memory& stopped, const Registers& registers, const Locator::ThreadStack& stack, State& state, bool innermost) {
  const LuajitLayout& layout = *state.activation.lua.luajit;
  const Address L = state.activation.L, G = state.activation.G;
  if (innermost && state.moved.stack == 0) state.moved = find_moved_stack(stopped, layout, L, innermost_words(registers, stack), false);
  const WithMovedStack memory(stopped, layout, L, state.moved);
  read_cframes(memory, layout, L, stack.start, stack.end(), state.cframes);
  state.saved_base = memory.get<Address>(L + layout.L_base).value_or(0);
  state.saved_pc = state.cframes.empty() ? 0 : read_ref(memory, layout, state.cframes[0] + layout.cframe_PC).value_or(0);
  if (state.saved_pc == L) state.saved_pc = 0;   // vm_x64.dasc: "any value outside of bytecode is ok"
  const auto touch = [&](const LuajitTop& top) {
    if (top.base != 0) walk_luajit(memory, layout, L, state.cframes, top, limits_, state.walk);
  };
  if (innermost) {
    state.vmstate = memory.get<std::int32_t>(G + layout.G_vmstate).value_or(0);
    const bool is_current = read_ref(memory, layout, G + layout.G_cur_L) == L;
    if (is_current) state.jit_base = read_ref(memory, layout, G + layout.G_jit_base).value_or(0);
    if (state.jit_base != 0 && !is_base(memory, layout, L, state.jit_base, 0)) state.jit_base = 0;
    touch({state.jit_base, 0, {}});
    std::vector<InlinedFrame> entering;
    const Address base = registers[rdx];
    if (base != state.saved_base && base != state.jit_base) touch(interpreter_top(memory, layout, L, base, registers[rbx], state.saved_pc, entering));
    if (registers[rbp] != state.saved_base && is_base(memory, layout, L, registers[rbp], registers[rbx])) touch({registers[rbp], registers[rbx], {}});
  }
  walk_luajit(memory, layout, L, state.cframes, {state.saved_base, state.saved_pc, {}}, limits_, state.walk);
  if (innermost && state.walk.dropped != 0 && state.moved.stack == 0) {
    state.moved = find_moved_stack(stopped, layout, L, innermost_words(registers, stack), true);
    if (state.moved.stack != 0) read_luajit(stopped, registers, stack, state, innermost);
  }
}

std::vector<Address> LuaReader::cframes() const {
  std::vector<Address> all;
  for (std::size_t i = 0; i < state_count_; ++i) all.insert(all.end(), states_[i].cframes.begin(), states_[i].cframes.end());
  return all;
}

const Trace* LuaReader::trace_at(Address pc) {
  for (std::size_t i = 0; i < state_count_; ++i) {
    const Activation& activation = states_[i].activation;
    if (activation.lua.luajit == nullptr) continue;
    if (const Trace* const trace = traces_.find(*activation.lua.luajit, activation.G, pc)) return trace;
  }
  return nullptr;
}

void LuaReader::refine(const std::vector<NativeFrame>& natives, const Registers& registers, const Core& core, const Memory& memory) {
  for (std::size_t i = 0; i < state_count_; ++i) {
    if (states_[i].activation.lua.luajit != nullptr) refine(states_[i], i == 0, natives, registers, core, memory);
  }
}

void LuaReader::refine(State& state, bool innermost, const std::vector<NativeFrame>& natives, const Registers& registers, const Core& core, const Memory& memory) {
  const LuajitLayout& layout = *state.activation.lua.luajit;
  const Address L = state.activation.L;
  const StoppedThenLive stopped_then_live(memory, live_);
  const WithMovedStack both(stopped_then_live, layout, L, state.moved);
  const auto is = [&](Address base, Address pc) { return is_base(both, layout, L, base, pc); };
  // The native frame on top of this state's innermost C frame: of the VM, or of a trace.
  const auto vm = std::ranges::find_if(natives, [&](const NativeFrame& frame) {
    return core.executes_lua(frame) && (state.cframes.empty() || frame.cfa > state.cframes[0]);
  });
  LuajitTop top;
  InlinedCode code;
  std::vector<InlinedFrame> entering;
  const Address rdx_base = registers[rdx], rbx_pc = registers[rbx];
  const bool in_vm = innermost && vm != natives.end() && vm == natives.begin() && !core.is_machine_code(*vm);
  // vm_x64.dasc, ->vm_exit_interp: BASE and PC are the interpreter's again before jit_base is 0. Of what runs on behalf of machine code,
  // nothing else has its sp at the C frame.
  const bool leaves_trace = in_vm && !state.cframes.empty() && vm->sp == state.cframes[0] && is(rdx_base, rbx_pc);
  if (innermost && state.jit_base != 0 && !leaves_trace) {
    top.base = state.jit_base;
    const Trace* trace = nullptr;
    if (vm != natives.end() && core.is_machine_code(*vm)) trace = traces_.find(layout, state.activation.G, vm->lookup);
    else if (state.vmstate > 0) trace = traces_.numbered(layout, state.activation.G, static_cast<unsigned>(state.vmstate));
    if (trace != nullptr) {
      state.trace = *trace;
      const Address at = vm != natives.end() && trace->contains(vm->lookup) ? vm->lookup : trace->mcode;
      code = traces_.decode(state.activation.G, L, *trace, at, state.jit_base, both);
      top = {code.base, code.pc, code.frames};
      if (!is(top.base, 0) && code.frames.empty()) top = {state.jit_base, 0, {}};
    }
  } else if (in_vm) {
    top = interpreter_top(both, layout, L, rdx_base, rbx_pc, state.saved_pc, entering);
    if (top.base == 0 && is(registers[rbp], rbx_pc)) top = {registers[rbp], rbx_pc, {}};   // vm_x64.dasc keeps BASE in rbp around some calls
  } else if (innermost && leaving_trace(state, natives, core, both, code)) {
    top = {code.base, code.pc, code.frames};
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
  walk_luajit(both, layout, L, state.cframes, top, limits_, state.walk);
  state.walk.relocated = state.moved.stack != 0;
  if (state.trace.object != 0 && !state.walk.calls.empty()) state.walk.calls[0].near = state.walk.calls[0].is_lua;
}

VmState LuaReader::vm_state_said(const State& state) {
  // lj_obj.h: ~LJ_VMST_INTERP and so on.
  constexpr VmState stock[] = {VmState::interpreting, VmState::c,         VmState::collecting, VmState::exiting,
                               VmState::recording,    VmState::optimising, VmState::assembling};
  constexpr VmState more[] = {VmState::interpreting, VmState::interpreting, VmState::c,         VmState::c,         VmState::collecting,
                              VmState::exiting,      VmState::recording,    VmState::optimising, VmState::assembling};
  const bool more_states = state.activation.lua.luajit->more_vmstates;
  const auto number = static_cast<std::size_t>(~state.vmstate);
  if (state.vmstate >= 0) return VmState::machine_code;
  return more_states ? (number < std::size(more) ? more[number] : VmState::none) : number < std::size(stock) ? stock[number] : VmState::none;
}

// lj_trace.c, lj_trace_exit: it writes to the stack what the trace had inlined (trace_exit_cp, called by lj_vm_cpcall), then SAVE_PC. Until
// then L->base is what jit_base was. False if that is not where the thread is.
bool LuaReader::leaving_trace(const State& state, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory, InlinedCode& code) {
  const Activation& activation = state.activation;
  const auto is_vm = [&](const NativeFrame& frame) { return core.executes_lua(frame); };
  auto vm = std::ranges::find_if(natives, is_vm);
  bool restores = false;
  if (vm != natives.end() && core.trace_exit(*vm) == nullptr) restores = true, vm = std::find_if(std::next(vm), natives.end(), is_vm);
  const TraceExit* const exit = vm != natives.end() ? core.trace_exit(*vm) : nullptr;
  if (exit == nullptr || vm->cfa > activation.boundary + 4096 || (restores && vm_state_said(state) != VmState::exiting)) return false;
  const Address dispatch = vm->registers[r14];
  const auto parent = memory.get<std::uint32_t>(dispatch + static_cast<Address>(std::int64_t{exit->parent}));
  const auto number = memory.get<std::uint32_t>(dispatch + static_cast<Address>(std::int64_t{exit->exitno}));
  if (!parent || !number) return false;
  const Trace* const trace = traces_.numbered(*activation.lua.luajit, activation.G, *parent);
  if (trace == nullptr) return false;
  code = traces_.at_exit(activation.G, activation.L, *trace, *number, state.saved_base, memory);
  return code.pc != 0 && (restores || code.pc - 4 != state.saved_pc);
}

VmState LuaReader::vm_state(const std::vector<NativeFrame>& natives, const Core& core) const {
  if (state_count_ == 0) return VmState::none;
  const State& state = states_[0];
  if (state.activation.lua.puc != nullptr) return !state.walk.calls.empty() && !state.walk.calls[0].is_lua ? VmState::c : VmState::interpreting;
  // The number lags behind at the edges of a trace; where the code is counts.
  const VmState said = vm_state_said(state);
  const auto vm = std::ranges::find_if(natives, [&](const NativeFrame& frame) { return core.executes_lua(frame); });
  const bool on_trace = vm != natives.end() && core.is_machine_code(*vm) && (state.cframes.empty() || vm->cfa > state.cframes[0]);
  if (on_trace && said != VmState::collecting) return VmState::machine_code;
  if (!on_trace && said == VmState::machine_code) return state.jit_base != 0 ? VmState::machine_code : VmState::interpreting;
  return said;
}

std::vector<Segment> LuaReader::segments() const {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < state_count_; ++i) segments.push_back({&states_[i].walk, states_[i].activation.boundary});
  return segments;
}

std::vector<Address> LuaReader::c_entries() const {
  std::vector<Address> entries;
  for (std::size_t i = 0; i < state_count_; ++i) {
    for (const LuaCall& call : states_[i].walk.calls) {
      if (!call.is_lua) entries.push_back(call.entry);
    }
  }
  return entries;
}

void LuaReader::judge(const Merged& merged, Quality& quality) const {
  if (state_count_ == 0) return;
  quality.with_lua = 1;
  bool broken = false, relocated = false;
  for (std::size_t i = 0; i < state_count_; ++i) {
    const LuaWalk& walk = states_[i].walk;
    broken |= walk.end == LuaWalk::End::broken;
    relocated |= walk.relocated;
    quality.half_built += walk.innermost_dropped;
    quality.calls_dropped += walk.dropped;
  }
  quality.lua_broken = broken;
  quality.relocated = relocated;
  quality.lua_unusable = states_[0].walk.calls.empty() && states_[0].walk.end == LuaWalk::End::broken;
  quality.not_joined = !merged.joined;
  quality.fresh_mismatch = merged.execute_frames != merged.fresh_calls;
}

// Of each luaV_execute frame but the innermost, the first call that it owns waits for a callee: its saved pc is exact.
void LuaReader::learn_pcs(const Merged& merged, const std::vector<NativeFrame>& natives, const Memory& memory) {
  std::size_t last = MergedFrame::no_native;
  bool innermost = true;
  for (const MergedFrame& frame : merged.frames) {
    if (frame.kind != MergedFrame::Kind::call) continue;
    const LuaCall& call = states_[frame.segment].walk.calls[frame.call];
    if (call.is_lua && states_[frame.segment].activation.lua.puc != nullptr && frame.native != MergedFrame::no_native && frame.native != last) {
      last = frame.native;
      if (!innermost) live_pc_.learn(natives[frame.native], call, memory);
    }
    innermost = false;
  }
}

// Only the innermost call of all can be ahead of its saved pc; every other one waits. 5.2 and 5.3 count in CallInfo itself.
Address LuaReader::pc_of(const MergedFrame& frame, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory) {
  const State& state = states_[frame.segment];
  const LuaCall& call = state.walk.calls[frame.call];
  if (state.activation.lua.puc == nullptr) return call.saved_pc;   // settled by refine()
  const Bytecode bytecode = state.activation.lua.puc->bytecode;
  const bool in_memory = bytecode == Bytecode::lua52 || bytecode == Bytecode::lua53;
  const bool innermost = frame.segment == 0 && frame.call == 0 && state.walk.innermost_dropped == 0;
  if (in_memory || !innermost || frame.native == MergedFrame::no_native) return call.saved_pc;
  const Prototype* const prototype = names_.prototype(state.activation.lua, call);
  const LuaCall* const caller = state.walk.caller_of(frame.call);
  return live_pc_.pc(natives[frame.native], frame.native == 0, call, caller, prototype, memory, core);
}

Frame LuaReader::label_call(const MergedFrame& frame, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory) {
  const State& state = states_[frame.segment];
  const LuaCall& call = state.walk.calls[frame.call];
  const LuaCall* const caller = state.walk.caller_of(frame.call);
  const Address pc = call.is_lua ? pc_of(frame, natives, core, memory) : 0;
  Frame labelled = names_.frame({state.activation.lua, state.activation.G, memory}, call, caller, pc);
  labelled.line_is_near = call.near;
  if (!call.is_lua) {
    const Frame native = core.describe_entry(call.entry);
    labelled.file = native.file;
    if (labelled.name.empty() || labelled.name == "?") labelled.name = native.name;
  }
  return labelled;
}

std::string LuaReader::left_out_text(const LuaWalk& walk) const {
  // A recording has no number: it would be another one in every sample, and the stacks would not add up.
  return limits_.count_left_out && walk.left_out > 0 ? fmt::format("[{} frames left out]", walk.left_out) : "[frames left out]";
}

// A trace by its number and where it begins.
Frame LuaReader::label_native(const NativeFrame& native, const Core& core) {
  if (!core.is_machine_code(native)) return core.describe(native);
  for (std::size_t i = 0; i < state_count_; ++i) {
    const Activation& activation = states_[i].activation;
    if (activation.lua.luajit == nullptr) continue;
    const Trace* const found = traces_.find(*activation.lua.luajit, activation.G, native.lookup);
    if (found == nullptr) continue;
    const Trace trace = *found;
    LuaCall start;
    start.is_lua = true;
    start.proto = trace.start_proto;
    if (!read_proto_of(live_, *activation.lua.luajit, start)) break;
    const Frame place = names_.frame({activation.lua, activation.G, live_}, start, nullptr, trace.start_pc + 4);
    return {Frame::Kind::marker, fmt::format("[trace {} {}:{}]", trace.number, place.file, place.line), {}, 0, 0};
  }
  return core.describe(native);
}

Stack LuaReader::label(const Merged& merged, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory) {
  learn_pcs(merged, natives, memory);
  const auto marker = [](std::string text) { return Frame{Frame::Kind::marker, std::move(text), {}, 0, 0}; };
  Stack stack;
  for (const MergedFrame& frame : merged.frames) {
    switch (frame.kind) {
      case MergedFrame::Kind::native: stack.push_back(label_native(natives[frame.native], core)); break;
      case MergedFrame::Kind::not_joined: stack.push_back(marker("[native and Lua frames not joined]")); break;
      case MergedFrame::Kind::left_out: stack.push_back(marker(left_out_text(states_[frame.segment].walk))); break;
      case MergedFrame::Kind::call:
        stack.push_back(label_call(frame, natives, core, memory));
        if (states_[frame.segment].walk.calls[frame.call].tail) stack.push_back(marker("(...tail calls...)"));
        if (states_[frame.segment].walk.calls[frame.call].gap) stack.push_back(marker("[unreadable]"));
        break;
    }
  }
  std::ranges::reverse(stack);
  return stack;
}

std::vector<std::string> LuaReader::rows() const {
  std::vector<std::string> names;
  for (const auto& [G, row] : locator_.global_states()) {
    const std::string name = row.puc != nullptr ? "Lua " + std::string(row.puc->name) : row.luajit->gc64 ? "LuaJIT, 64-bit references" : "LuaJIT, 32-bit references";
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace luaspy
