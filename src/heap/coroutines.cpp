#include "heap/coroutines.h"

#include <algorithm>

#include "base/text.h"
#include "luastate/lua_inspector.h"
#include "luastate/strings.h"

namespace luaspy {
namespace {

CallVariables variables_of(VariableReader& reader, const CoroutineLook& look, std::size_t call) {
  CallVariables has = reader.variables(call, look.walk.calls[call].saved_pc);
  const bool yields = call == 0 && look.status == CoroutineStatus::suspended;
  return yields && has.variables.empty() ? reader.yielded() : has;
}

// "" if it cannot be read.
std::string error_text(const Memory& memory, const LuaValues& lua, Address slot) {
  constexpr std::size_t longest = 400;  // bytes
  const std::optional<Value> value = lua.read_value(memory, slot);
  const std::optional<std::string> text = value ? read_string(memory, lua, value->word, longest) : std::nullopt;
  return text ? printable(*text, longest) : "";
}

}  // namespace

bool Coroutines::wants_details(std::size_t of_group, std::size_t of_all) const {
  return names_ != nullptr && of_group < limits_.detailed && of_all < limits_.detailed_of_all;
}

void Coroutines::find(const AddressSpace& space, const States& states, const std::function<void(std::int64_t)>& told) {
  copy_.set_space(space);
  copy_.start(true);
  states_.clear();
  learned_.clear(), learned_of_all_ = 0;
  for (const auto& [G, lua] : states)
    find_state(states_.emplace_back(
                   State{G, &lua->with_number_types(live_, G), CoroutineList(live_, G, *lua), false, false, {}, {}}),
               space, told);
  std::ranges::sort(states_, {}, &State::G);
}

void Coroutines::find_state(State& state, const AddressSpace& space, const std::function<void(std::int64_t)>& told) {
  constexpr std::int64_t short_list = 4 << 20;  // bytes in use
  constexpr int rounds = 8;
  constexpr std::int64_t few_objects = 1000, most_objects = 1'000'000;
  HeapCopy pieces(live_, limits_.copy_bytes);
  pieces.set_space(space);
  state.whole_list = state.lua->collector(live_, state.G).bytes <= short_list;
  HeapCopy& through = state.whole_list ? copy_ : pieces;
  constexpr int readings = 6;
  for (int i = 0; i < readings && !state.list_complete; ++i) {
    if (i != 0) through.start(false);
    state.list_complete = state.list.read_all(through, told);
  }
  find_coroutines(state, 0);
  // Each round takes less time than the one before, so fewer new objects appear meanwhile.
  for (int i = 0; i < rounds; ++i) {
    state.list_complete &= state.list.check();
    const std::size_t known = state.list.threads().size();
    HeapCopy recent(live_, limits_.copy_bytes);
    recent.set_space(space);
    const bool read = state.list.read_new(recent, most_objects);
    find_coroutines(state, known);
    if (read && state.list.new_objects() < few_objects) break;
  }
}

void Coroutines::find_coroutines(State& state, std::size_t from) {
  const auto learn = [&](Address L) {
    look_at_coroutine(copy_, {*state.lua, state.G, L, Active::no}, limits_.walk, look_);
    prefetch_coroutine(copy_, *state.lua, L);
    if (look_.error != 0) (void)error_text(copy_, *state.lua, look_.error);
    if (!wants_details(0, learned_of_all_)) return;
    std::size_t& of_group = learned_[signature_of(look_)];
    if (!wants_details(of_group, learned_of_all_)) return;
    ++of_group, ++learned_of_all_;
    // The values are made again from the copy, in the same order; this finds out which memory that
    // takes.
    CountingRoom room = limits_.room;
    VariableReader variables(copy_, {L, state.G, state.lua}, look_.walk, *names_, limits_.values, room);
    for (std::size_t i = look_.walk.calls.size(); i-- > 0;) (void)variables_of(variables, look_, i);
  };
  if (from == 0) learn(state.lua->main_thread(copy_, state.G));
  (void)state.lua->collector(copy_, state.G);
  (void)state.lua->finalizer_thread(copy_, state.G);
  for (std::size_t i = from; i < std::min(state.list.threads().size(), limits_.most_coroutines); ++i)
    learn(state.list.threads()[i]);
}

void Coroutines::copy() {
  constexpr std::int64_t most_objects = 20'000;
  constexpr std::size_t most_new = 1000;
  copy_.copy();
  for (State& state : states_) {
    const std::size_t known = state.list.threads().size();
    state.list_complete &= state.list.read_new(copy_, most_objects);
    const std::size_t end = std::min(state.list.threads().size(), known + most_new);
    for (std::size_t i = known; i < end; ++i)
      look_at_coroutine(copy_, {*state.lua, state.G, state.list.threads()[i], Active::no}, limits_.walk, look_);
  }
  copy_.seal();
}

bool Coroutines::confirm(const std::vector<std::vector<ActiveState>>& active) {
  active_.clear();
  for (const std::vector<ActiveState>& thread : active) {
    for (std::size_t i = 0; i < thread.size(); ++i)
      active_.emplace(thread[i].L, i == 0 ? Active::innermost : Active::further_out);
  }
  bool complete = true;
  detailed_of_all_ = 0;
  for (State& state : states_) {
    confirm_state(state);
    complete &= state.report.complete;
  }
  return complete;
}

Active Coroutines::active_in(Address L) const {
  const auto found = active_.find(L);
  return found != active_.end() ? found->second : Active::no;
}

void Coroutines::confirm_state(State& state) {
  state.report = {};
  state.groups.clear();
  StateReport& report = state.report;
  report.G = state.G;
  report.lua = state.lua->name();
  report.main = state.lua->main_thread(copy_, state.G);
  report.collector = state.lua->collector(copy_, state.G);
  std::vector<Address> threads;
  ThreadList list;
  if (state.whole_list) list_threads(copy_, *state.lua, state.G, state.lua->first_object(copy_, state.G), {}, list);
  if (list.complete) {
    threads = std::move(list.threads);
    report.objects = list.objects;
    report.garbage = list.dead_threads;
  } else {
    for (const Address L : state.list.threads()) {
      if (state.list.has(copy_, report.collector, L)) threads.push_back(L);
    }
    report.objects = state.list.objects();
    report.garbage = state.list.garbage();
  }
  report.complete = report.collector.known && (list.complete || state.list_complete) &&
                    threads.size() <= limits_.most_coroutines;
  if (threads.size() > limits_.most_coroutines) threads.resize(limits_.most_coroutines);
  // LuaJIT's finalizer coroutine is not reported while it is not in use.
  const Address finalizers = state.lua->finalizer_thread(copy_, state.G);
  const auto rests = [&](Address L) {
    return L == finalizers && look_at_coroutine(copy_, {*state.lua, state.G, L, active_in(L)}, limits_.walk, look_) &&
           look_.status == CoroutineStatus::dead;
  };
  for (const Address L : threads) {
    if (L != report.main && !rests(L)) confirm_coroutine(state, L);
  }
  if (look_at_coroutine(copy_, {*state.lua, state.G, report.main, active_in(report.main)}, limits_.walk, look_)) {
    report.main_status = look_.status;
    report.hooked += look_.hooked;
  }
}

void Coroutines::confirm_coroutine(State& state, Address L) {
  const Active active = active_in(L);
  const std::int64_t missing = copy_.missing();
  const bool read = look_at_coroutine(copy_, {*state.lua, state.G, L, active}, limits_.walk, look_);
  if (!read && active == Active::no) {
    ++state.report.unread;  // being made or freed, unless the copy lacks something
    state.report.complete &= copy_.missing() == missing;
    return;
  }
  // A running coroutine is sometimes between two calls; its thread's own stack shows more.
  if (!read) look_.status = active == Active::innermost ? CoroutineStatus::running : CoroutineStatus::normal;
  ++state.report.counts[static_cast<std::size_t>(look_.status)];
  state.report.hooked += look_.hooked;
  Group& group = state.groups[signature_of(look_)];
  ++group.count;
  if (group.examples.size() < CoroutineGroup::most_examples) group.examples.push_back(L);
  if (wants_details(group.detailed.size(), detailed_of_all_)) group.detailed.push_back(L), ++detailed_of_all_;
  if (look_.error == 0 || group.errors.size() >= CoroutineGroup::most_errors) return;
  const std::string error = error_text(copy_, *state.lua, look_.error);
  if (!error.empty() && std::ranges::find(group.errors, error) == group.errors.end()) group.errors.push_back(error);
}

CoroutineGroup Coroutines::describe(const State& state, const Group& group, Names& names,
                                    const NativeFunctions& functions) {
  CoroutineGroup described;
  described.count = group.count;
  described.examples = group.examples;
  described.errors = group.errors;
  const Address L = group.examples.front();
  look_at_coroutine(copy_, {*state.lua, state.G, L, active_in(L)}, limits_.walk, look_);
  described.status = look_.status;
  const Names::Context context = {*state.lua, state.G, copy_};
  CoroutineFrames frames = frames_of(look_, names, functions, context);
  described.stack = std::move(frames.stack);
  described.began = std::move(frames.began);
  for (const Address one : group.detailed) {
    if (!look_at_coroutine(copy_, {*state.lua, state.G, one, active_in(one)}, limits_.walk, look_)) continue;
    CountingRoom room = limits_.room;
    VariableReader variables(copy_, {one, state.G, state.lua}, look_.walk, *names_, limits_.values, room);
    CoroutineDetail& detail = described.details.emplace_back();
    detail.L = one;
    for (const std::size_t call : frames.call_of)
      detail.variables.push_back(call < look_.walk.calls.size() ? variables_of(variables, look_, call)
                                                                : CallVariables());
  }
  return described;
}

std::vector<StateReport> Coroutines::report(Names& names, const NativeFunctions& functions) {
  std::vector<StateReport> reports;
  for (State& state : states_) {
    StateReport& report = reports.emplace_back(state.report);
    for (const auto& [signature, group] : state.groups) {
      CoroutineGroup described = describe(state, group, names, functions);
      const auto same = std::ranges::find_if(report.groups, [&](const CoroutineGroup& other) {
        return other.status == described.status && other.stack == described.stack && other.began == described.began;
      });
      if (same == report.groups.end()) {
        report.groups.push_back(std::move(described));
        continue;
      }
      same->count += described.count;
      for (CoroutineDetail& detail : described.details) {
        if (same->details.size() < limits_.detailed) same->details.push_back(std::move(detail));
      }
      for (std::string& error : described.errors) {
        if (same->errors.size() < CoroutineGroup::most_errors &&
            std::ranges::find(same->errors, error) == same->errors.end())
          same->errors.push_back(std::move(error));
      }
      for (const Address L : described.examples) {
        if (same->examples.size() < CoroutineGroup::most_examples) same->examples.push_back(L);
      }
    }
    std::ranges::stable_sort(report.groups, std::greater(), &CoroutineGroup::count);
  }
  return reports;
}

}  // namespace luaspy
