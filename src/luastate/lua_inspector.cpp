#include "luastate/lua_inspector.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "luastate/collector.h"
#include "luastate/frame_owners.h"
#include "luastate/luas.h"

namespace luaspy {

LuaInspector::LuaInspector(const Memory& live, const Memory& objects, WalkLimits limits, const Machine& machine)
    : locator_(machine),
      state_places_(machine),
      names_(live),
      readers_(make_stack_walkers(live, objects, machine)),
      limits_(limits) {}

void LuaInspector::try_layouts(std::vector<const Lua*> layouts) {
  locator_.forget();
  for (const auto& reader : readers_) reader->forget();
  known_functions_.clear();
  seen_.clear();
  locator_.try_layouts(std::move(layouts));
}

void LuaInspector::locate(const Locator::StoppedThread& thread, const Locator::LastLook& last, bool all,
                          Located& located, Locator::Effort effort) {
  located.all = all;
  const bool copies = copy_policy_.copies();
  located.all_functions = all || copies;
  located.copies.clear();
  locator_.locate(thread, last, all ? Locator::Unknown::read : Locator::Unknown::defer, located.active,
                  located.deferred, effort);
  located.mentions = locator_.mentions();
  located.left_out = locator_.left_out();
  located.unprotected.clear();
  for (const ActiveState& state : locator_.unprotected()) {
    if (std::ranges::find(located.active, state.L, &ActiveState::L) == located.active.end())
      located.unprotected.push_back(state);
  }
  located.guessed = locator_.guessed();
  std::optional<FunctionCopier> copier;
  if (copies) copier.emplace(thread.memory, lasting_functions_, located.copies);
  prefetch(thread, located, located.all_functions ? nullptr : &known_functions_, copier ? &*copier : nullptr);
  prefetch_heaps(thread.memory, located);
}

// The states of a thread are nearly always of one global_State.
void LuaInspector::prefetch_heaps(const Memory& memory, const Located& located) {
  Address last = 0;
  for (const std::vector<ActiveState>* const states : {&located.active, &located.unprotected}) {
    for (const ActiveState& state : *states) {
      if (std::exchange(last, state.G) != state.G) (void)read_heap(memory, *state.lua, state.G);
    }
  }
}

void LuaInspector::prefetch(const Locator::StoppedThread& thread, const Located& located, const KnownFunctions* known,
                            FunctionCopier* copier) const {
  static const KnownFunctions none;
  std::size_t number = 0;
  for (const std::vector<ActiveState>* const states : {&located.active, &located.unprotected}) {
    for (const ActiveState& state : *states) {
      const WalkLimits limits = limits_of(number++);
      ProtoList protos;
      reader_of(state).prefetch(thread, state, limits, known != nullptr ? *known : none, protos);
      if (copier != nullptr) copier->copy(*state.lua, protos.all());
    }
  }
}

// Calls left out are counted only for the innermost states: a hostile stack may have hundreds of
// states, with calls that form cycles.
WalkLimits LuaInspector::limits_of(std::size_t state) const {
  constexpr std::size_t most_counted = 2;
  WalkLimits limits = limits_;
  limits.count_left_out &= state < most_counted;
  return limits;
}

bool LuaInspector::missed(const Locator::ThreadStack& stack, Located& located) const {
  if (located.deferred.empty() && located.left_out.none()) return false;
  const std::vector<Address> missed = locator_.find_missed(names_.memory(), stack, located.deferred, located.left_out,
                                                           located.mentions,
                                                           [&](Address G) { return seen_.contains(G); });
  std::vector<Address>& states = located.mentions.states;
  for (const Address L : missed) {
    if (states.size() < Locator::most_states) states.push_back(L);
  }
  return !missed.empty();
}

void LuaInspector::add_state(Walked& walked, const LookMemory& look, const ActiveState& activation,
                             bool anchored) const {
  if (walked.states.size() <= walked.walked) walked.states.emplace_back();
  RunningState& state = walked.states[walked.walked++];
  state.activation = activation;
  state.anchored = anchored;
  state.walk.clear();
  reader_of(activation).read(look, walked.walked == 1, limits_of(walked.walked - 1), state);
}

Walked LuaInspector::walk(const Located& located, const LookMemory& look, Walked room) {
  constexpr std::size_t most_seen = 4096;  // a program may make states without end
  names_.begin_look();
  if (seen_.size() > most_seen) seen_.clear();
  for (const ActiveState& state : located.active) seen_[state.G] = state.lua;
  Walked walked = std::move(room);
  walked.walked = 0;
  walked.unclaimed = false;
  walked.parts.clear();
  for (const ActiveState& activation : located.active) {
    walked.parts.push_back({walked.walked, activation.boundary});
    add_state(walked, look, activation, !located.guessed);
  }
  walked.running = walked.walked;
  for (const ActiveState& activation : located.unprotected) add_state(walked, look, activation, false);
  return walked;
}

const Trace* LuaInspector::trace_at(const Walked& walked, Address pc) {
  for (const RunningState& state : walked.on_thread()) {
    if (const Trace* const trace = trace_at(state.activation, pc)) return trace;
  }
  return nullptr;
}

void LuaInspector::match_natives(Walked& walked, const std::vector<NativeFrame>& natives,
                                 const NativeFunctions& functions, const LookMemory& look) {
  assign_owners(walked, state_places_, natives, functions, look.objects);
  for (std::size_t i = 0; i < walked.running; ++i) {
    RunningState& state = walked.states[i];
    reader_of(state.activation).match_natives(state, i == 0, natives, functions, look, limits_);
  }
}

// What is alive is freed in the cycle after this one at the earliest: after an atomic step.
bool LuaInspector::may_have_freed(const Walked& walked, const Memory& stopped) const {
  Address last = 0;
  for (const RunningState& state : walked.on_thread()) {
    const Address G = state.activation.G;
    if (G == last || std::ranges::none_of(state.walk.calls, [&](const LuaCall& call) {
          return call.closure != 0 && known_functions_.has(call.closure);
        }))
      continue;
    last = G;
    const Lua& lua = *state.activation.lua;
    if (shows_atomic_step(lua.collector(stopped, G), lua.collector(names_.memory(), G))) return true;
  }
  return false;
}

void LuaInspector::use_copies(Located& located) {
  bool thrown_away = names_.drain_gone() != 0;
  for (FunctionCopy& copy : located.copies) {
    const Address proto = copy.prototype.address;
    const std::uint64_t mark = copy.mark;
    thrown_away |= copy.lua->mark(names_.memory(), proto) != mark;
    const Names::Kept kept = names_.keep(std::move(copy));
    thrown_away |= kept.replaced;
    if (kept.alike >= LastingFunctions::enough_looks) lasting_functions_.add(proto, mark);
  }
  located.copies.clear();
  copy_policy_.record(thrown_away);
  lasting_functions_.looked();
}

bool LuaInspector::confirm_functions(const Walked& walked, bool all) {
  bool same = true;
  for (const RunningState& state : walked.on_thread()) {
    if (!all) same &= known_functions_.confirm(state.walk);
  }
  if (!same) return false;
  for (const RunningState& state : walked.on_thread()) known_functions_.add(state.walk);
  return true;
}

VmState LuaInspector::vm_state(const Walked& walked, const std::vector<NativeFrame>& natives,
                               const NativeFunctions& functions) const {
  if (walked.running == 0) return VmState::none;
  return reader_of(walked.states[0].activation).vm_state(walked.states[0], natives, functions);
}

std::vector<HeapReading> LuaInspector::heaps(const Walked& walked, const Memory& stopped) {
  std::vector<HeapReading> heaps;
  for (const RunningState& state : walked.on_thread()) {
    const Address G = state.activation.G;
    if (std::ranges::find(heaps, G, &HeapReading::G) != heaps.end()) continue;
    if (const std::optional<HeapReading> heap = read_heap(stopped, *state.activation.lua, G)) heaps.push_back(*heap);
  }
  return heaps;
}

std::vector<std::string> LuaInspector::layout_names() const {
  std::vector<std::string> names;
  for (const auto& [G, layout] : seen_) {
    const std::string name = layout->name();
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace luaspy
