#include "luastate/lua_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "luastate/bytecode.h"

namespace luaspy {

Frame marker(std::string text) { return {Frame::Kind::marker, std::move(text), {}, 0, 0}; }

std::string left_out_text(const LuaWalk& walk, bool counted) {
  // A recording has no number: it would be another one in every sample, and the stacks would not add up.
  return counted && walk.left_out > 0 ? fmt::format("[{} frames left out]", walk.left_out) : "[frames left out]";
}

Frame label_call(Names& names, const Core& core, const Names::Context& context, const LuaCall& call, const LuaCall* caller, Address pc) {
  Frame labelled = names.frame(context, call, caller, pc);
  labelled.line_is_near = call.near;
  if (!call.is_lua) {
    const Frame native = core.describe_entry(call.entry);
    labelled.file = native.file;
    if (labelled.name.empty() || labelled.name == "?") labelled.name = native.name;
    if (labelled.name.empty()) return marker("[unreadable]");   // its code is in no module: what was read is no function
  }
  return labelled;
}

void add_markers(const LuaCall& call, Stack& stack) {
  if (call.tail) stack.push_back(marker("(...tail calls...)"));
  if (call.gap) stack.push_back(marker("[unreadable]"));
}

void LuaReader::try_rows(std::vector<Dialect> rows) {
  locator_.forget();
  luajit_.forget();
  known_functions_.clear();
  seen_.clear();
  locator_.try_rows(std::move(rows));
}

void LuaReader::read(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack, const Locator::ThreadStack& before,
                     bool all, Found& found, const Locator::Mentions* mentions) {
  found.all = all;
  locator_.locate(memory, registers, stack, before, all ? Locator::Unknown::read : Locator::Unknown::defer, found.active, found.deferred, mentions);
  found.mentions = locator_.mentions();
  found.unprotected.clear();
  for (const Activation& state : locator_.unprotected()) {
    if (std::ranges::find(found.active, state.L, &Activation::L) == found.active.end()) found.unprotected.push_back(state);
  }
  found.guessed = locator_.guessed();
  touch(memory, registers, stack, found, all ? nullptr : &known_functions_);
}

void LuaReader::touch(const Memory& memory, const Registers& registers, const Locator::ThreadStack& stack, const Found& found, const KnownFunctions* known) const {
  static const KnownFunctions none;
  std::size_t number = 0;
  for (const std::vector<Activation>* const states : {&found.active, &found.unprotected}) {
    for (const Activation& state : *states) {
      const WalkLimits limits = limits_of(number++);
      if (state.lua.puc != nullptr) touch_puc(memory, *state.lua.puc, state.L, limits, known != nullptr ? *known : none);
      else LuajitReader::touch(memory, registers, stack, state, limits, known != nullptr ? *known : none);
    }
  }
}

// What is left out is counted of the innermost states only: a hostile stack has hundreds, with calls that go round in circles.
WalkLimits LuaReader::limits_of(std::size_t state) const {
  constexpr std::size_t most_counted = 2;
  WalkLimits limits = limits_;
  limits.count_left_out &= state < most_counted;
  return limits;
}

bool LuaReader::missed(const Found& found) const {
  return !found.deferred.empty() && locator_.is_missed(names_.memory(), found.deferred, [&](Address G) { return seen_.contains(G); });
}

void LuaReader::add_state(const Memory& memory, const Memory& objects, const Registers& registers, const Locator::ThreadStack& stack, const Activation& activation,
                          bool anchored) {
  if (states_.size() <= walked_count_) states_.emplace_back();
  State& state = states_[walked_count_++];
  state.activation = activation;
  state.anchored = anchored;
  state.walk.clear();
  state.errorJmp = 0;
  if (activation.lua.puc != nullptr) {
    walk_puc(memory, objects, *activation.lua.puc, activation.L, limits_of(walked_count_ - 1), state.walk);
    state.errorJmp = memory.get<Address>(activation.L + activation.lua.puc->L_errorJmp).value_or(0);
  } else {
    LuajitReader::read(memory, objects, registers, stack, activation, walked_count_ == 1, state.luajit);
  }
}

void LuaReader::walk(const Found& found, const Memory& memory, const Memory& objects, const Registers& registers, const Locator::ThreadStack& stack) {
  active_ = found.active;
  constexpr std::size_t most_seen = 4096;   // a program may make states without end
  if (seen_.size() > most_seen) seen_.clear();
  for (const Activation& state : active_) seen_[state.G] = state.lua;
  walked_count_ = 0;
  unclaimed_ = false;
  parts_.clear();
  for (const Activation& activation : active_) {
    parts_.push_back({walked_count_, activation.boundary});
    add_state(memory, objects, registers, stack, activation, !found.guessed);
  }
  state_count_ = walked_count_;
  for (const Activation& activation : found.unprotected) {
    add_state(memory, objects, registers, stack, activation, false);
  }
}

std::vector<Address> LuaReader::cframes() const {
  std::vector<Address> all;
  for (std::size_t i = 0; i < state_count_; ++i) {
    if (states_[i].activation.lua.luajit != nullptr) all.insert(all.end(), states_[i].luajit.cframes.begin(), states_[i].luajit.cframes.end());
  }
  return all;
}

void LuaReader::refine(const std::vector<NativeFrame>& natives, const Registers& registers, const Core& core, const Memory& objects) {
  settle_parts(natives, core, objects);
  for (std::size_t i = 0; i < state_count_; ++i) {
    State& state = states_[i];
    if (state.activation.lua.luajit != nullptr) luajit_.refine(natives, registers, core, objects, state.activation, i == 0, limits_, state.luajit, state.walk);
    else if (i == 0) settle_innermost(state, natives, core, objects);
  }
}

const Trace* LuaReader::trace_at(Address pc) {
  for (std::size_t i = 0; i < state_count_; ++i) {
    const Activation& activation = states_[i].activation;
    if (activation.lua.luajit == nullptr) continue;
    if (const Trace* const trace = luajit_.trace_at(activation, pc)) return trace;
  }
  return nullptr;
}

VmState LuaReader::vm_state(const std::vector<NativeFrame>& natives, const Core& core) const {
  if (state_count_ == 0) return VmState::none;
  const State& state = states_[0];
  if (state.activation.lua.luajit != nullptr) return luajit_.vm_state(natives, core, state.activation, state.luajit);
  const VmState calling = !state.walk.calls.empty() && !state.walk.calls[0].is_lua ? VmState::c : VmState::interpreting;
  return collects(natives, core) ? VmState::collecting : calling;
}

// Is a frame of the collector further in than that of the innermost call? Further out, it has called a finalizer.
bool LuaReader::collects(const std::vector<NativeFrame>& natives, const Core& core) const {
  const State& state = states_[0];
  const LuaCall* const innermost = state.walk.calls.empty() ? nullptr : &state.walk.calls[0];
  Address collector = 0;   // sp of the outermost of its frames
  for (const NativeFrame& native : natives) {
    const bool executes = core.executes_lua(native);
    if (innermost == nullptr || innermost->is_lua ? executes : native.function == innermost->entry) return collector != 0;
    if (executes) break;
    if (core.collects(native)) collector = native.sp;
  }
  if (innermost == nullptr) return collector != 0;   // the host has called Lua's API
  // A C function that is not called yet (5.2, luaD_precall), or has gone on to another by a jump, has no frame. But from 5.2 on finalizers are
  // called protected (lgc.c, GCTM), and a protected call leaves its mark on the stack.
  return collector != 0 && !innermost->is_lua && state.activation.lua.puc->bytecode != Bytecode::lua51 && (state.errorJmp == 0 || state.errorJmp > collector);
}

bool LuaReader::settle_functions(bool all) {
  bool same = true;
  for (std::size_t i = 0; i < state_count_; ++i) {
    if (!all) same &= known_functions_.confirm(states_[i].walk);
  }
  for (std::size_t i = 0; i < state_count_ && same; ++i) known_functions_.add(states_[i].walk);
  return same;
}

std::vector<Segment> LuaReader::segments() const {
  std::vector<Segment> segments;
  for (const Part& part : parts_) segments.push_back({&states_[part.state].walk, part.boundary});
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
  quality.unclaimed = unclaimed_;
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
    const LuaCall& call = state_of(frame).walk.calls[frame.call];
    if (call.is_lua && state_of(frame).activation.lua.puc != nullptr && frame.native != MergedFrame::no_native && frame.native != last) {
      last = frame.native;
      if (!innermost) live_pc_.learn(natives[frame.native], call, memory);
    }
    innermost = false;
  }
}

// A call's set-up and its end change the stack's slots and CallInfo in the order that a compiler chose: for some instructions the innermost call is one
// and another. luaV_execute's own variables are of one piece.
void LuaReader::settle_innermost(State& state, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory) {
  LuaWalk& walk = state.walk;
  if (walk.calls.empty() || walk.innermost_dropped != 0) return;
  LuaCall& call = walk.calls[0];
  if (!call.is_lua) {
    // From 5.4 on luaD_poscall puts the results where the function was before L->ci is the caller's (ldo.c).
    walk.innermost_left_out = !natives.empty() && core.in_core_module(natives[0]) && !core.may_be_code(call.entry);
    return;
  }
  const auto execute = std::ranges::find_if(natives, [&](const NativeFrame& frame) { return core.executes_lua(frame); });
  if (execute == natives.end()) return;
  const LuaCall* const caller = walk.caller_of(0);
  const Bytecode bytecode = state.activation.lua.puc->bytecode;
  const Address known_pc = live_pc_.sure_pc(*execute, memory);
  if (bytecode == Bytecode::lua51) {
    const bool is_other = !call.has_pc(known_pc) || call.tail;   // in a recursion a mark of tail calls is what was there before
    walk.innermost_left_out = execute != natives.begin() && caller != nullptr && known_pc != 0 && known_pc == caller->saved_pc && is_other;
    return;
  }
  if (execute == natives.begin()) live_pc_.learn_executed(*execute, call.ci, memory);   // at work on it, but for a few instructions
  const Address executed = live_pc_.executed(*execute, memory);
  if (executed == 0) return;
  walk.innermost_left_out = caller != nullptr && executed == caller->ci;
  const bool writes_first = bytecode == Bytecode::lua54 || bytecode == Bytecode::lua55;
  if (!writes_first || call.tail || executed != call.ci || execute == natives.begin()) return;
  // luaD_pretailcall puts the callee where its caller was, and tells so last. Not all compilers keep pc in a place of its own meanwhile.
  const Address saved_pc = memory.get<Address>(call.ci + state.activation.lua.puc->ci_savedpc).value_or(0);
  for (const Address pc : {saved_pc, known_pc}) {
    if (!plausible_pointer(pc, 4) || call.has_pc(pc) || pc == call.code) continue;
    call.tail |= is_tail_call(bytecode, names_.memory().get<std::uint32_t>(pc - 4).value_or(0));
  }
}

// Only the innermost call of all can be ahead of its saved pc; every other one waits. 5.2 and 5.3 count in CallInfo itself.
Address LuaReader::pc_of(const MergedFrame& frame, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory) {
  const State& state = state_of(frame);
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

Frame LuaReader::label_call(const MergedFrame& frame, Address pc, const Core& core, const Memory& memory) {
  const State& state = state_of(frame);
  const LuaCall& call = state.walk.calls[frame.call];
  return luaspy::label_call(names_, core, {state.activation.lua, state.activation.G, memory}, call, state.walk.caller_of(frame.call), pc);
}

// A trace by its number and where it begins.
Frame LuaReader::label_native(const NativeFrame& native, const Core& core) {
  if (!core.is_machine_code(native)) return core.describe(native);
  for (std::size_t i = 0; i < state_count_; ++i) {
    const Activation& activation = states_[i].activation;
    const Trace* const trace = activation.lua.luajit != nullptr ? luajit_.trace_at(activation, native.lookup) : nullptr;
    if (trace == nullptr) continue;
    const unsigned number = trace->number;
    const Address pc = trace->start_pc + 4;
    LuaCall start;
    start.proto = trace->start_proto;
    if (!read_proto_of(names_.memory(), *activation.lua.luajit, start)) break;
    const Frame place = names_.frame({activation.lua, activation.G, names_.memory()}, start, nullptr, pc);
    return {Frame::Kind::marker, fmt::format("[trace {} {}:{}]", number, place.file, place.line), {}, 0, 0};
  }
  return core.describe(native);
}

void LuaReader::find_calls(const Merged& merged, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory) {
  learn_pcs(merged, natives, memory);
  labelled_.clear();
  for (const MergedFrame& frame : merged.frames) {
    Labelled& labelled = labelled_.emplace_back();
    if (frame.kind != MergedFrame::Kind::call) continue;
    const State& state = state_of(frame);
    const LuaCall& call = state.walk.calls[frame.call];
    labelled = {&state.activation, &state.walk, frame.call, call.is_lua ? pc_of(frame, natives, core, memory) : 0};
    Stack markers;
    add_markers(call, markers);
    labelled_.resize(labelled_.size() + markers.size());
  }
  std::ranges::reverse(labelled_);
}

// Outermost first: a function tells those that begin on the same line in it apart.
Stack LuaReader::name_calls(const Merged& merged, const std::vector<NativeFrame>& natives, const Core& core, const Memory& memory) {
  Stack stack;
  for (auto frame = merged.frames.rbegin(); frame != merged.frames.rend(); ++frame) {
    switch (frame->kind) {
      case MergedFrame::Kind::native: stack.push_back(label_native(natives[frame->native], core)); break;
      case MergedFrame::Kind::not_joined: stack.push_back(marker("[native and Lua frames not joined]")); break;
      case MergedFrame::Kind::left_out: stack.push_back(marker(left_out_text(state_of(*frame).walk, limits_.count_left_out))); break;
      case MergedFrame::Kind::call: {
        Stack outside;
        add_markers(state_of(*frame).walk.calls[frame->call], outside);
        std::ranges::reverse_copy(outside, std::back_inserter(stack));
        stack.push_back(label_call(*frame, labelled_[stack.size()].pc, core, memory));
        break;
      }
    }
  }
  return stack;
}

std::vector<std::string> LuaReader::rows() const {
  std::vector<std::string> names;
  for (const auto& [G, row] : seen_) {
    const std::string name = name_of(row);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace luaspy
