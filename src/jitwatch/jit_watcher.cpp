#include "jitwatch/jit_watcher.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "luastate/names.h"

namespace luaspy {
namespace {

constexpr std::size_t most_functions = 50'000;
constexpr std::uint64_t most_walked = 1'000'000, most_strings = 50'000;

const JitPenalty* find(const std::vector<JitPenalty>& penalties, Address start) {
  const auto found = std::ranges::find(penalties, start, &JitPenalty::start);
  return found != penalties.end() ? &*found : nullptr;
}

}  // namespace

JitWatcher::JitWatcher(pid_t pid, const Lua& lua, Address G, system::Clock::time_point start)
    : JitWatcher(std::make_unique<LiveMemory>(pid), pid, lua, G, start) {}

JitWatcher::JitWatcher(std::unique_ptr<Memory> memory, pid_t pid, const Lua& lua, Address G,
                       system::Clock::time_point start)
    : memory_(std::move(memory)), reader_(make_jit_reader(lua, *memory_, G)), start_(start) {
  knowledge_.pid = pid, knowledge_.G = G, knowledge_.lua = &lua;
}

bool JitWatcher::is_there() const {
  const Lua& lua = *knowledge_.lua;
  return lua.is_thread_of(*memory_, lua.main_thread(*memory_, knowledge_.G), knowledge_.G);
}

CodePlace JitWatcher::place_of(Address instruction) {
  const Address prototype = reader_->prototype_of(instruction);
  if (prototype == 0) return {};
  std::optional<JitFunction> function = reader_->function(prototype);
  if (!function || instruction < function->code) return {};
  CodePlace place;
  place.position = static_cast<std::uint32_t>((instruction - function->code) / 4);
  place.file = chunk_name(function->place.source);
  place.line_defined = function->place.line_defined;
  place.line = place.position == 0 ? place.line_defined : function->line(place.position);
  if (knowledge_.functions.size() < most_functions)
    knowledge_.functions.insert_or_assign(prototype, std::move(*function));
  return place;
}

void JitWatcher::add_event(JitEvent event) {
  event.at_ns = system::to_ns(system::Clock::now() - start_);
  if (knowledge_.events.size() < JitKnowledge::most_events) knowledge_.events.push_back(std::move(event));
  else ++knowledge_.events_left_out;
}

// Most of the time: it is off while a program ends, too.
void JitWatcher::see_whether_on() {
  const std::optional<bool> is_on = reader_->is_on();
  if (!is_on) return;
  on_ += *is_on ? 1 : -1;
  knowledge_.is_on = on_ != 0 ? on_ > 0 : *is_on;
}

// An entry that is just being written has the place of one abort and the reason of another.
std::optional<JitInstant> JitWatcher::stable(std::optional<JitInstant> now) const {
  constexpr int most = 4;
  for (int i = 0; i < most && now; ++i) {
    std::optional<JitInstant> again = reader_->instant();
    const bool is_same = again && again->penalties == now->penalties;
    now = std::move(again);
    if (is_same) return now;
  }
  return std::nullopt;
}

void JitWatcher::look() {
  if (is_closing_ && reader_->is_on() == false) return;
  std::optional<JitInstant> now = reader_->instant();
  constexpr unsigned seldom = 64;
  const bool is_due = looks_++ % seldom == 0;
  // The abort that blacklists a place may be the same as the one before.
  if (!is_due && deferred_.empty() && now && now == knowledge_.last) return see_blacklisted();
  if (!is_there()) return;
  if (is_due) see_whether_on();
  now = stable(std::move(now));
  if (!now) return;
  see_flush(*now);
  see_penalties(*now);
  see_blacklisted();
  see_traces(*now);
  if (is_closing_) return;
  knowledge_.last = std::move(now);
  has_looked_ = true;
}

// lj_trace.c, lj_trace_flushall: nothing else takes entries out of the ring of penalties, begins with the first number
// again, or gives memory of machine code back; but for lua_close().
bool JitWatcher::is_flushed(const JitInstant& now) const {
  if (now.penalties.size() < penalties_.size()) return true;
  const std::optional<JitInstant>& last = knowledge_.last;
  if (!last) return false;
  const bool is_freed = (now.free_slot == 0 && last->free_slot != 0) ||
                        (now.has_machine_code && now.machine_code < last->machine_code);
  return is_freed && reader_->is_on() == true;
}

void JitWatcher::see_flush(const JitInstant& now) {
  if (!is_flushed(now)) return;
  ++knowledge_.flushes;
  add_event({.kind = JitEvent::Kind::flush});
  penalties_.clear();
  deferred_.clear();
  for (auto& [start, attempts] : knowledge_.attempts) {
    attempts.penalty = 0;
    if (!attempts.blacklisted) attempts.failed = 0;
  }
  for (auto& [prototype, function] : knowledge_.functions) {
    for (JitStart& start : function.starts) {
      if (start.state == JitStart::State::compiled) start.state = JitStart::State::open;
    }
  }
}

// lua_close() switches the compiler off, and then frees the traces. What was there before is what is worth a report.
bool JitWatcher::is_closing(const std::vector<Address>& objects) const {
  const auto count = [](const std::vector<Address>& all) {
    return std::ranges::count_if(all, [](Address a) { return a != 0; });
  };
  return count(objects) < count(objects_) && reader_->is_on() == false;
}

void JitWatcher::see_penalties(const JitInstant& now) {
  std::vector<JitPenalty> seen;
  for (const JitPenalty& penalty : now.penalties) {
    const JitPenalty* const before = find(penalties_, penalty.start);
    if (before != nullptr && *before == penalty) {
      seen.push_back(penalty);
      continue;
    }
    // Where it was aborted is known once that is over: J->cur is what was recorded last.
    constexpr int most_deferred = 5;
    const bool goes_on = now.last.start == penalty.start && now.last.number != 0;
    if (goes_on && ++deferred_[penalty.start] < most_deferred) {
      if (before != nullptr) seen.push_back(*before);
      continue;
    }
    deferred_.erase(penalty.start);
    seen.push_back(penalty);
    if (knowledge_.attempts.size() >= JitKnowledge::most_attempts && !knowledge_.attempts.contains(penalty.start))
      continue;
    see_failed(penalty, knowledge_.attempts[penalty.start], now, before == nullptr);
  }
  penalties_ = std::move(seen);
}

void JitWatcher::see_failed(const JitPenalty& penalty, JitAttempts& attempts, const JitInstant& now, bool is_first) {
  // The memory of a function that was freed may be another's.
  const CodePlace start = place_of(penalty.start);
  if (is_first && attempts.start != start) attempts = {};
  if (!start.file.empty() || attempts.start.file.empty()) attempts.start = start;
  attempts.penalty = penalty.value;
  attempts.failed = attempts_of(penalty.value);
  JitAbort abort{.reason = penalty.reason};
  const JitInstant::Recording& last = now.last;
  const bool is_last = last.start == penalty.start && last.number == 0 && last.parent == 0 && last.exit == 0;
  bool is_compiled = false;
  if (const auto function = knowledge_.functions.find(reader_->prototype_of(penalty.start));
      function != knowledge_.functions.end()) {
    for (const JitStart& each : function->second.starts)
      is_compiled |= each.position == start.position && each.state == JitStart::State::compiled;
  }
  if (is_last && !is_compiled) {  // otherwise it may have been recorded again meanwhile
    abort.detail = last.detail;
    if (plausible_pointer(last.pc, 4)) abort.at = place_of(last.pc);
  }
  add_abort(attempts, abort);
  if (has_looked_)
    add_event({.kind = JitEvent::Kind::abort, .start = attempts.start, .abort = abort, .failed = attempts.failed});
}

void JitWatcher::add_abort(JitAttempts& attempts, JitAbort abort) {
  std::erase(attempts.aborts, abort);
  if (attempts.aborts.size() >= JitKnowledge::most_aborts) attempts.aborts.erase(attempts.aborts.begin());
  attempts.aborts.push_back(std::move(abort));
}

// Its last abort leaves the ring as it was.
void JitWatcher::see_blacklisted() {
  constexpr unsigned may_be_next = 29'000;  // doubled, and up to 15 more: above 60000
  for (const JitPenalty& penalty : penalties_) {
    if (penalty.value < may_be_next) continue;
    const auto found = knowledge_.attempts.find(penalty.start);
    if (found == knowledge_.attempts.end() || found->second.blacklisted || !reader_->is_blacklisted(penalty.start))
      continue;
    JitAttempts& attempts = found->second;
    attempts.blacklisted = true;
    attempts.failed = attempts_of(penalty.value) + 1;
    if (!has_looked_) continue;
    add_event({.kind = JitEvent::Kind::blacklisted,
               .start = attempts.start,
               .abort = attempts.aborts.empty() ? JitAbort{} : attempts.aborts.back(),
               .failed = attempts.failed});
  }
}

void JitWatcher::see_traces(const JitInstant& now) {
  constexpr unsigned seldom = 64;
  if (has_looked_ && now.code_top == code_top_ && now.free_slot == free_slot_ && (looks_ - 1) % seldom != 0) return;
  code_top_ = now.code_top, free_slot_ = now.free_slot;
  std::vector<Address> objects = reader_->trace_objects();
  is_closing_ = is_closing(objects) || !is_there();  // it may have ended while this was read
  if (is_closing_) return;
  for (unsigned number = 1; number < std::max(objects.size(), objects_.size()); ++number) {
    const Address before = number < objects_.size() ? objects_[number] : 0,
                  object = number < objects.size() ? objects[number] : 0;
    if (object == before) continue;
    knowledge_.traces.erase(number), knowledge_.trace_starts.erase(number);
    if (object == 0) continue;
    std::optional<JitTrace> trace = reader_->trace(object);
    if (!trace || trace->number != number) {
      objects[number] = 0;  // it is just being made
      continue;
    }
    const CodePlace start = place_of(trace->start);
    if (has_looked_) add_event({.kind = JitEvent::Kind::trace, .start = start, .trace = *trace});
    knowledge_.trace_starts[number] = start;
    knowledge_.traces[number] = std::move(*trace);
  }
  objects_ = std::move(objects);
}

void JitWatcher::want(std::vector<Address> prototypes) { wanted_ = std::move(prototypes); }

void JitWatcher::survey() {
  if (is_closing_ || !is_there()) return;
  std::vector<Address> prototypes;
  bool complete = false;
  // The list changes while it is read: a walk that is led astray is begun again.
  constexpr std::chrono::milliseconds patience(300);
  const system::Clock::time_point until = system::Clock::now() + patience;
  for (int attempt = 0; attempt < 3 && !complete && system::Clock::now() < until; ++attempt)
    complete = reader_->find_prototypes(most_walked, prototypes);
  for (const auto& [prototype, function] : knowledge_.functions) prototypes.push_back(prototype);
  prototypes.insert(prototypes.end(), wanted_.begin(), wanted_.end());
  std::ranges::sort(prototypes);
  prototypes.erase(std::unique(prototypes.begin(), prototypes.end()), prototypes.end());
  if (prototypes.size() > most_functions) prototypes.resize(most_functions), complete = false;
  std::map<Address, JitFunction> functions;
  for (const Address prototype : prototypes) {
    if (std::optional<JitFunction> function = reader_->function(prototype)) functions[prototype] = std::move(*function);
  }
  std::vector<JitTrace> traces = reader_->traces();
  JitStrings strings = reader_->strings(most_strings);
  if (!is_there() || is_closing(reader_->trace_objects())) return;  // it has ended meanwhile
  knowledge_.functions = std::move(functions);
  knowledge_.has_all_functions = complete;
  knowledge_.is_surveyed = true;
  for (JitTrace& trace : traces) {
    const auto known = knowledge_.traces.find(trace.number);
    if (known != knowledge_.traces.end() && known->second.object == trace.object) known->second = std::move(trace);
  }
  knowledge_.strings = std::move(strings);
}

}  // namespace luaspy
