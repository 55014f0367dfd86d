#include "dump/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "attach/program_name.h"
#include "system/progress.h"

namespace luaspy {

std::vector<FrameDetail> read_variables(StackReader& reader, const StackReader::Finished& look,
                                        const ValueLimits& limits, CountingRoom& room) {
  std::map<const LuaWalk*, VariableReader> of_states;
  std::vector<FrameDetail> details;
  for (const StackCall& frame : look.joined.calls) {
    FrameDetail& detail = details.emplace_back();
    if (frame.state == nullptr) continue;
    const ActiveState& state = *frame.state;
    const auto [variables, unused] = of_states.try_emplace(frame.walk, look.snapshot(), state, *frame.walk,
                                                           reader.lua().names(), limits, room);
    detail.variables = variables->second.variables(frame.call, frame.pc);
  }
  return details;
}

std::vector<FunctionOfFrame> functions_of(const StackReader::Finished& look) {
  std::vector<FunctionOfFrame> functions;
  for (const StackCall& frame : look.joined.calls) {
    FunctionOfFrame& function = functions.emplace_back();
    if (frame.state == nullptr || frame.state->lua->kind() != LuaKind::luajit) continue;
    function = {frame.state->G, frame.walk->calls[frame.call].proto};
  }
  return functions;
}

void add_functions(const std::vector<FunctionOfFrame>& functions, ThreadLook& thread) {
  const std::size_t count = std::min(functions.size(), thread.stack.size());
  thread.details.resize(std::max(thread.details.size(), count));
  for (std::size_t i = 0; i < count; ++i) thread.details[i].function = functions[i];
}

void read_compilers(const Memory& memory, StackReader& reader, ProcessLook& look) {
  for (const auto& [G, lua] : reader.lua().global_states()) {
    if (lua->kind() == LuaKind::luajit)
      look.compilers.emplace(G, look_at_compiler(memory, look.pid, *lua, G, reader.lua().names()));
  }
}

// The target may run while this reads.
void read_collectors(const Memory& memory, StackReader& reader, ProcessLook& look) {
  for (const auto& [G, lua] : reader.lua().global_states()) {
    StateReport& report = look.states.emplace_back();
    report.G = G;
    report.lua = lua->name();
    report.collector = lua->collector(memory, G);
  }
  std::ranges::sort(look.states, {}, &StateReport::G);
}

namespace {

void keep_shown(Mode mode, ThreadLook& thread) {
  Stack& stack = thread.stack;
  thread.details.resize(stack.size());
  std::size_t at = 0;
  std::erase_if(thread.details, [&](const FrameDetail&) { return !shows(mode, stack[at++]); });
  keep_shown(mode, stack);
}

void add_sources(SourceLines& sources, ThreadLook& thread) {
  thread.details.resize(thread.stack.size());
  for (std::size_t i = 0; i < thread.details.size(); ++i) {
    const Frame& frame = thread.stack[i];
    if (frame.kind == Frame::Kind::lua && frame.line > 0)
      thread.details[i].source = sources.line(frame.file, frame.line);
  }
}

void add_sources(SourceLines& sources, const Stack& stack, ProcessLook& look) {
  for (const Frame& frame : stack) {
    if (frame.kind != Frame::Kind::lua || frame.line <= 0) continue;
    if (std::optional<SourceLine> line = sources.line(frame.file, frame.line))
      look.sources.emplace(std::pair(frame.file, frame.line), std::move(*line));
  }
}

}  // namespace

// 30 handlers that wait in one function are told apart.
CoroutineLimits coroutine_limits(const InspectOptions& options) {
  CoroutineLimits limits;
  if (!options.locals) return limits;
  constexpr std::size_t of_a_group = 40;
  limits.detailed = of_a_group;
  limits.values = options.values;
  return limits;
}

void complete(ProcessLook& look, Mode mode, SourceLines& sources, const StackReader& reader) {
  std::vector<std::pair<pid_t, pid_t>> owners;
  for (ThreadLook& thread : look.threads) {
    keep_shown(mode, thread);
    add_sources(sources, thread);
    if (thread.wait && thread.wait->mutex_owner) owners.emplace_back(thread.tid, *thread.wait->mutex_owner);
  }
  for (const StateReport& state : look.states) {
    for (const CoroutineGroup& group : state.groups) add_sources(sources, group.stack, look);
  }
  look.deadlocks = deadlocks(owners);
  look.images = reader.images();
  look.layouts = reader.lua().layout_names();
}

std::optional<Sample> Inspector::look_at(Thread& thread) {
  constexpr int tries = 20;  // a sleeping thread that moves while it is read is looked at again
  std::optional<Sampler::Sampled> sampled;
  for (int i = 0; i < tries; ++i) {
    sampled = session_.sampler().sample(thread);
    if (!sampled || (sampled->sample.loss != Loss::moved && sampled->sample.loss != Loss::not_stopped)) break;
  }
  if (!sampled || sampled->sample.loss == Loss::ended) return std::nullopt;
  Sample& last = last_[thread.tid()];
  if (sampled->sample.again) return last;
  last = std::move(sampled->sample);
  functions_.erase(thread.tid());
  if (sampled->from == nullptr) return last;
  if (options_.compilers) functions_[thread.tid()] = functions_of(*sampled->from);
  for (const ActiveState& state : sampled->from->active()) {
    if (state.lua->has_hook(session_.target().memory(), state.G, state.L)) hooked_[state.G].insert(state.L);
  }
  return last;
}

// First looks at each thread by itself, with short stops. A later standstill then already knows
// most of what it needs.
ProcessLook Inspector::look() {
  const system::Clock::time_point now = system::Clock::now();
  if (!first_) first_ = now;
  ProcessLook look;
  Process& process = session_.target().process();
  look.pid = process.pid();
  look.command = process.command();
  look.time = std::chrono::duration<double>(now - *first_).count();
  for (const auto& thread : process.threads()) {
    const Thread::Times times = thread->times();
    std::optional<Sample> sample = look_at(*thread);
    if (!sample) continue;
    Stack stack = session_.sampler().tables().stacks.frames_of(sample->stack);
    look.threads.push_back({thread->tid(),
                            thread->name(),
                            std::move(*sample),
                            std::move(stack),
                            {},
                            {},
                            {times.on_cpu, times.waited_for_cpu}});
  }
  if (options_.locals || options_.coroutines) look_in_standstill(look);
  if (look.states.empty()) {
    read_collectors(session_.target().memory(), session_.sampler().reader(), look);
    for (StateReport& report : look.states) {
      if (const auto hooked = hooked_.find(report.G); hooked != hooked_.end())
        report.hooked = static_cast<std::int64_t>(hooked->second.size());
    }
  }
  add_waits(look);
  if (options_.compilers) add_compilers(look);
  complete(look, options_.mode, sources_, session_.sampler().reader());
  const std::string executable = process.executable();
  for (LuaImage& image : look.images) {
    if (image.path == executable) image.path = program_of(look.pid);
  }
  return look;
}

void Inspector::add_compilers(ProcessLook& look) {
  for (ThreadLook& thread : look.threads) add_functions(functions_[thread.tid], thread);
  read_compilers(session_.target().memory(), session_.sampler().reader(), look);
}

std::vector<std::pair<pid_t, CpuWatch>> Inspector::watch_running(const ProcessLook& look) {
  constexpr std::size_t most = 1024;  // a bound, because a process may have any number of threads, and each is read
                                      // three times
  std::vector<std::pair<pid_t, CpuWatch>> watches;
  for (const auto& thread : session_.target().process().threads()) {
    const auto seen = std::ranges::find(look.threads, thread->tid(), &ThreadLook::tid);
    if (seen == look.threads.end() || seen->sample.state != Sample::State::running || watches.size() == most) continue;
    watches.emplace_back(thread->tid(), CpuWatch(look.pid, thread));
  }
  return watches;
}

void Inspector::look_in_standstill(ProcessLook& look) {
  constexpr int tries = 5;
  StackReader& reader = session_.sampler().reader();
  Coroutines coroutines(session_.target().memory(), coroutine_limits(options_), &reader.lua().names());
  if (options_.coroutines) reader.find_states();
  if (options_.locals) {
    constexpr std::size_t most_states = 64;
    std::size_t read = 0;
    for (const auto& [G, lua] : reader.lua().global_states()) {
      if (++read <= most_states)
        reader.lua().names().read_loaded(*lua, G);  // for the names of values, which are made in the standstill
    }
  }
  bool settled = false;
  for (int i = 0; i < tries && !settled; ++i) settled = try_standstill(look, coroutines, i);
  look.disturbed = !settled;
  name_stacks(look);
  if (!options_.coroutines) return;
  look.states = coroutines.report(reader.lua().names(), reader.native_code());
  for (StateReport& state : look.states) state.exact = exact_;
}

// The stack of a sleeping thread already has the marker in which it ends.
void Inspector::name_stacks(ProcessLook& look) {
  StackReader& reader = session_.sampler().reader();
  const StackTable& stacks = session_.sampler().tables().stacks;
  for (ThreadLook& thread : look.threads) {
    const Stack end = stacks.frames_of(thread.sample.stack);
    const auto unnamed = unnamed_.find(thread.tid);
    if (unnamed == unnamed_.end()) continue;
    thread.stack = stacks.frames_of(reader.name(unnamed->second));
    thread.stack.insert(thread.stack.end(), end.begin(), end.end());
  }
  unnamed_.clear();
}

// Coroutines are read in the standstill, so that everything is of one instant, if nothing is
// running anyway or if it does not take long.
bool Inspector::finds_in_standstill(const Standstill& standstill, int tried) const {
  constexpr std::int64_t most_in_stop = 64 << 20;  // bytes in use by all Luas: some 85 ms, at the 1.3 ms per MB that
                                                   // README gives
  constexpr int most_tries = 2;                    // if threads sleep, but wake before everything is read
  std::int64_t bytes = 0;
  for (const auto& [G, lua] : session_.sampler().reader().lua().global_states())
    bytes += lua->collector(session_.target().memory(), G).bytes;
  return bytes <= most_in_stop || (!standstill.has_stopped() && tried < most_tries);
}

// Where the program runs meanwhile, a big heap may take seconds.
void Inspector::find_coroutines(Coroutines& coroutines) {
  StackReader& reader = session_.sampler().reader();
  system::ProgressLine progress;
  coroutines.find(reader.space(), reader.lua().global_states(), [&](std::int64_t objects) {
    if (!exact_ && progress.is_due())
      progress.show(fmt::format("looking for coroutines: {:.1f} million objects", static_cast<double>(objects) / 1e6));
  });
}

// False if not everything was of one instant.
bool Inspector::try_standstill(ProcessLook& look, Coroutines& coroutines, int tried) {
  Sampler& sampler = session_.sampler();
  unnamed_.clear();
  sampler.reader().refresh();  // new mappings may have coroutines
  auto standstill = std::make_unique<Standstill>(session_.target());
  exact_ = !options_.coroutines || finds_in_standstill(*standstill, tried);
  if (!exact_) {
    standstill->resume();
    find_coroutines(coroutines);
    standstill = std::make_unique<Standstill>(session_.target());
  }
  std::vector<std::vector<ActiveState>> active;
  CountingRoom room;
  sampler.reader().name_later(true);
  sampler.reader().lua().names().stand_still(true);
  for (const HeldThread& member : standstill->members()) {
    const auto thread = std::ranges::find(look.threads, member.thread().tid(), &ThreadLook::tid);
    if (thread == look.threads.end()) continue;
    auto [sample, from] = sampler.look(member);
    thread->sample = std::move(sample);
    thread->stack.clear();
    functions_.erase(thread->tid);
    if (from == nullptr) continue;
    active.push_back(from->active());
    if (options_.compilers) functions_[thread->tid] = functions_of(*from);
    if (options_.locals) thread->details = read_variables(sampler.reader(), *from, options_.values, room);
    unnamed_.emplace(thread->tid, sampler.reader().move_unnamed(*from));
  }
  sampler.reader().name_later(false);
  sampler.reader().lua().names().stand_still(false);
  if (options_.coroutines && exact_) find_coroutines(coroutines), coroutines.keep();
  else if (options_.coroutines) coroutines.copy();
  const bool undisturbed = standstill->undisturbed();
  const std::int64_t stood_still = standstill->resume().count();
  look.stood_still_ns = std::max(look.stood_still_ns, stood_still);
  for (ThreadLook& thread : look.threads) {
    if (thread.sample.state == Sample::State::running) thread.sample.stopped_ns = stood_still;
  }
  const bool whole = !options_.coroutines || coroutines.confirm(active);
  return undisturbed && whole;
}

void Inspector::add_waits(ProcessLook& look) {
  Process& process = session_.target().process();
  Waits waits(process, session_.target().memory());
  const auto& threads = process.threads();  // asking again may list them again
  for (ThreadLook& thread : look.threads) {
    if (thread.sample.state != Sample::State::sleeping) continue;
    const auto of_process = std::ranges::find_if(threads, [&](const auto& each) { return each->tid() == thread.tid; });
    if (of_process == threads.end()) continue;
    const ThreadState state = (*of_process)->state();
    if (state.kind != ThreadState::Kind::sleeping) continue;
    thread.wait = waits.explain(**of_process, state);
  }
}

}  // namespace luaspy
