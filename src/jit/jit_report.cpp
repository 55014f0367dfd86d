#include "jit/jit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "luastate/names.h"
#include "profile/amount_text.h"

namespace luaspy {
namespace {

constexpr auto interpreting = static_cast<std::size_t>(VmState::interpreting),
               in_c = static_cast<std::size_t>(VmState::c),
               in_machine_code = static_cast<std::size_t>(VmState::machine_code);

// Frame::prototype is Prototype::identity, unless the same function was loaded several times or has several names
// (Names).
bool may_be(const JitFunction& function, const Frame& frame) {
  constexpr std::uint32_t most_twins = 1 << 12, most_names = 64, step = 0x9e37'79b9;
  if (frame.prototype == 0) return true;
  for (std::uint32_t name = 0; name < most_names; ++name) {
    if (frame.prototype - function.identity - name * step < most_twins) return true;
  }
  return false;
}

// What is known of one place where a trace may begin.
struct Finding {
  const JitSeen* seen = nullptr;
  const JitStart* start = nullptr;  // nullptr: its function is not known
  const JitAttempts* attempts = nullptr;
  WhyInterpreted why = WhyInterpreted::not_found;
};

class ReportMaker {
 public:
  ReportMaker(const StackTable& stacks, JitReport& report) : stacks_(stacks), report_(report) {
    for (const JitSeen& seen : report_.states) {
      for (const auto& [prototype, function] : seen.knowledge->functions)
        functions_[{chunk_name(function.place.source), function.place.line_defined}].push_back({&seen, &function});
    }
  }

  void make() {
    for (const auto& [frame, time] : report_.time.lines) add_line(stacks_.frames()[frame], time);
    for (auto& [key, row] : rows_) report_.rows.push_back(std::move(row));
    std::ranges::stable_sort(report_.rows, std::greater(), &JitRow::outside_ns);
    for (const JitSeen& seen : report_.states) add_traces(seen);
    for (const auto& [frame, ns] : report_.time.traces) add_trace_time(stacks_.frames()[frame].name, ns);
    std::ranges::stable_sort(report_.traces, std::greater(), &JitTraceRow::ns);
  }

 private:
  struct Known {
    const JitSeen* seen;
    const JitFunction* function;
  };

  static const JitAttempts* attempts_at(const JitSeen& seen, const JitFunction& function, const JitStart& start) {
    for (const std::uint32_t position : {start.position, start.also}) {
      if (position == 0 && start.position != 0) continue;
      const auto found = seen.knowledge->attempts.find(function.code + 4 * Address{position});
      if (found != seen.knowledge->attempts.end()) return &found->second;
    }
    return nullptr;
  }

  static Finding finding_at(const Known& known, const JitStart& start) {
    Finding finding = {known.seen, &start, attempts_at(*known.seen, *known.function, start)};
    using State = JitStart::State;
    const bool is_blacklisted = start.state == State::blacklisted ||
                                (finding.attempts != nullptr && finding.attempts->blacklisted);
    if (known.seen->knowledge->is_on == false) finding.why = WhyInterpreted::compiler_off;
    else if (known.function->is_off) finding.why = WhyInterpreted::function_off;
    else if (is_blacklisted) finding.why = WhyInterpreted::blacklisted;
    else if (start.state == State::compiled) finding.why = WhyInterpreted::compiled;
    else if (finding.attempts != nullptr && finding.attempts->failed != 0) finding.why = WhyInterpreted::aborted;
    else finding.why = start.state == State::never ? WhyInterpreted::never : WhyInterpreted::not_tried;
    return finding;
  }

  // The innermost loop around the line; if nothing is known of that, what is around it.
  static Finding finding_for(const Known& known, int line) {
    std::vector<const JitStart*> around;
    for (const JitStart& start : known.function->starts) {
      if (start.position == 0 || (start.first_line <= line && line <= start.last_line)) around.push_back(&start);
    }
    std::ranges::stable_sort(around, {}, [](const JitStart* start) {
      return std::pair(start->position == 0, start->last_line - start->first_line);
    });
    Finding innermost;
    for (const JitStart* const start : around) {
      const Finding finding = finding_at(known, *start);
      if (innermost.start == nullptr) innermost = finding;
      if (finding.why != WhyInterpreted::not_tried && finding.why != WhyInterpreted::never) return finding;
    }
    return innermost;
  }

  void add_line(const Frame& frame, const TimeByState& time) {
    Finding finding;
    if (const auto found = functions_.find({frame.file, frame.line_defined}); found != functions_.end()) {
      for (const Known& known : found->second) {
        if (!may_be(*known.function, frame)) continue;
        const Finding one = finding_for(known, frame.line);
        if (finding.start == nullptr || one.why < finding.why) finding = one;
      }
    }
    Frame function = frame;
    function.line = 0;
    JitRow& row = rows_[{{describe(function, false), frame.prototype},
                         finding.start != nullptr ? finding.start->position : 0}];
    row.interpreted_ns += time[interpreting];
    row.c_ns += time[in_c];
    row.machine_code_ns += time[in_machine_code];
    if (!row.function.empty()) return;
    row.function = describe(function, false);
    row.file = frame.file, row.line_defined = frame.line_defined;
    describe_finding(finding, row);
  }

  void describe_finding(const Finding& finding, JitRow& row) const {
    row.why = finding.why;
    if (finding.start == nullptr) return;
    row.is_loop = finding.start->position != 0;
    row.first_line = finding.start->first_line, row.last_line = finding.start->last_line;
    if (finding.why == WhyInterpreted::compiled) {
      row.trace = finding.start->trace;
      row.exits = exits_of(*finding.seen->knowledge, row.trace);
    }
    if (finding.attempts == nullptr) return;
    row.at_least = forgets_attempts(*finding.seen->knowledge);
    row.failed = finding.attempts->failed, row.penalty = finding.attempts->penalty;
    const bool is_failure = finding.why == WhyInterpreted::blacklisted || finding.why == WhyInterpreted::aborted;
    if (!is_failure || finding.attempts->aborts.empty()) return;
    row.reason = abort_text(*finding.seen, finding.attempts->aborts.back(), finding.start);
    row.advice = advice_text(*finding.seen, finding.attempts->aborts.back(), finding.start);
  }

  // Exits of the tree of traces that were taken until LuaJIT tried to compile what is there, and lead to none.
  static std::vector<std::string> exits_of(const JitKnowledge& knowledge, unsigned root) {
    constexpr std::size_t most = 3;
    std::vector<std::string> exits;
    const int hotexit = knowledge.last ? knowledge.last->parameters.hotexit.value_or(10) : 10;
    for (const auto& [number, trace] : knowledge.traces) {
      if (number != root && trace.root != root) continue;
      for (std::size_t exit = 0; exit < trace.exits.size() && exits.size() < most; ++exit) {
        const int count = trace.exits[exit];
        if (count < hotexit || count == JitTrace::exit_is_linked) continue;
        exits.push_back(
            fmt::format("trace {} exit {} (its side trace has failed {} times)", number, exit, count - hotexit + 1));
      }
      if (exits.size() >= most) break;
      if (trace.link_kind() == JitLink::interpreter)
        exits.push_back(fmt::format("trace {} ends in the interpreter", number));
      else if (trace.link_kind() == JitLink::stitch)
        exits.push_back(fmt::format("trace {} ends at a C function that is not compiled", number));
    }
    return exits;
  }

  void add_traces(const JitSeen& seen) {
    for (const auto& [number, trace] : seen.knowledge->traces) {
      const auto start = seen.knowledge->trace_starts.find(number);
      JitTraceRow row = {0, seen.knowledge->pid, trace, {}, {}};
      if (start != seen.knowledge->trace_starts.end()) row.start = start->second;
      for (const auto& [other, child] : seen.knowledge->traces) {
        if (child.parent == number) row.children[child.exit] = other;
      }
      report_.traces.push_back(std::move(row));
    }
  }

  // `name`: as StackNamer names a trace.
  void add_trace_time(const std::string& name, std::int64_t ns) {
    for (JitTraceRow& row : report_.traces) {
      const std::string start = fmt::format("[trace {} {}:{}", row.trace.number, row.start.file, row.start.line);
      if (!name.starts_with(start) || !name.ends_with(fmt::format(", {} bytes]", row.trace.bytes))) continue;
      row.ns += ns;
      return;
    }
  }

  const StackTable& stacks_;
  JitReport& report_;
  std::map<std::pair<std::string, int>, std::vector<Known>> functions_;  // by file and line
  // By function, as it is called and Frame::prototype, and by start.
  std::map<std::pair<std::pair<std::string, std::uint32_t>, std::uint32_t>, JitRow> rows_;
};

}  // namespace

std::string_view name(WhyInterpreted why) {
  constexpr std::array<std::string_view, 8> names = {"not found", "compiler off", "function off", "blacklisted",
                                                     "aborted",   "compiled",     "never",        "not tried"};
  return names[static_cast<std::size_t>(why)];
}

bool forgets_attempts(const JitKnowledge& knowledge) {
  constexpr std::size_t ring = 64;  // lj_jit.h, PENALTY_SLOTS
  return knowledge.last && knowledge.last->penalties.size() >= ring;
}

std::string attempts_text(unsigned failed, bool at_least) {
  return (at_least ? "at least " : "") + count_of(failed, "attempt");
}

std::string place_text(const CodePlace& place) {
  return place.file.empty() ? "a place that is not known" : fmt::format("{}:{}", place.file, place.line);
}

const JitStart* start_at(const JitKnowledge& knowledge, Address start) {
  const auto after = knowledge.functions.upper_bound(start);  // bytecode follows its prototype
  if (after == knowledge.functions.begin()) return nullptr;
  const JitFunction& function = std::prev(after)->second;
  for (const JitStart& each : function.starts) {
    if (function.code + 4 * Address{each.position} == start) return &each;
    if (each.also != 0 && function.code + 4 * Address{each.also} == start) return &each;
  }
  return nullptr;
}

namespace {

// Which instruction it was is not known, and this says which ones it can have been.
bool says_more(const JitSeen& seen, const JitAbort& abort, const JitStart* start) {
  return abort.reason && abort.detail.kind == JitDetail::Kind::unknown && start != nullptr &&
         !start->uncompiled.empty() &&
         seen.reader->reason(*abort.reason, abort.detail, "").starts_with("NYI: bytecode");
}

// Of code that ran into what is blacklisted: why that is.
std::string deeper_text(const JitSeen& seen, const JitAbort& abort, const std::string& reason) {
  if (reason != "blacklisted") return "";
  for (const auto& [start, attempts] : seen.knowledge->attempts) {
    const CodePlace& place = attempts.start;
    if (!attempts.blacklisted || attempts.aborts.empty() || place.file != abort.at.file || place.line != abort.at.line)
      continue;
    JitAbort deeper = attempts.aborts.back();
    if (!deeper.reason || seen.reader->reason(*deeper.reason, {}, "") == reason) continue;
    return fmt::format(" (that: {})", abort_text(seen, deeper, start_at(*seen.knowledge, start)));
  }
  return "";
}

}  // namespace

std::string abort_text(const JitSeen& seen, const JitAbort& abort, const JitStart* start) {
  if (!abort.reason) return "not known why";
  std::string function;
  if (abort.detail.kind == JitDetail::Kind::function) function = seen.function_name(abort.detail.function);
  std::string reason = seen.reader->reason(*abort.reason, abort.detail, function);
  if (says_more(seen, abort, start))
    reason += fmt::format("; its own code has {} in line {}", start->uncompiled[0].name, start->uncompiled[0].line);
  if (abort.at.file.empty()) return reason;
  return fmt::format("{} at {}{}", reason, place_text(abort.at), deeper_text(seen, abort, reason));
}

std::string advice_text(const JitSeen& seen, const JitAbort& abort, const JitStart* start) {
  if (!abort.reason) return "";
  JitDetail detail = abort.detail;
  if (says_more(seen, abort, start)) detail = {JitDetail::Kind::number, start->uncompiled[0].opcode};
  return seen.reader->advice(*abort.reason, detail);
}

std::string link_text(const JitTrace& trace) {
  constexpr std::array<std::string_view, 10> names = {
      "none",           "root",        "loop",   "tail-recursion", "up-recursion",
      "down-recursion", "interpreter", "return", "stitch",         ""};
  const JitLink link = trace.link_kind();
  if (link == JitLink::unknown) return fmt::format("link type {}", trace.link_type);
  const std::string_view text = names[static_cast<std::size_t>(link)];
  if (trace.link == 0 || trace.link == trace.number) return std::string(text);
  return fmt::format("{} {}", text, trace.link);
}

JitReport make_jit_report(const CodeTime& time, const StackTable& stacks, double seconds, std::vector<JitSeen> states) {
  JitReport report;
  report.seconds = seconds;
  report.time = time;
  report.states = std::move(states);
  ReportMaker(stacks, report).make();
  return report;
}

}  // namespace luaspy
