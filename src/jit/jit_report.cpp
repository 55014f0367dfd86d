#include "jit/jit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "luastate/names.h"

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

  // The innermost loop around the line; if nothing is known of that, what is around it.
  static JitFinding finding_for(const Known& known, int line) {
    std::vector<const JitStart*> around;
    for (const JitStart& start : known.function->starts) {
      if (start.position == 0 || (start.first_line <= line && line <= start.last_line)) around.push_back(&start);
    }
    std::ranges::stable_sort(around, {}, [](const JitStart* start) {
      return std::pair(start->position == 0, start->last_line - start->first_line);
    });
    JitFinding innermost;
    for (const JitStart* const start : around) {
      const JitFinding finding = finding_at(*known.seen->knowledge, *known.function, *start);
      if (innermost.start == nullptr) innermost = finding;
      if (finding.why != WhyInterpreted::not_tried && finding.why != WhyInterpreted::never) return finding;
    }
    return innermost;
  }

  void add_line(const Frame& frame, const TimeByState& time) {
    JitFinding finding;
    const JitSeen* seen = nullptr;
    if (const auto found = functions_.find({frame.file, frame.line_defined}); found != functions_.end()) {
      for (const Known& known : found->second) {
        if (!may_be(*known.function, frame)) continue;
        const JitFinding one = finding_for(known, frame.line);
        if (finding.start == nullptr || one.why < finding.why) finding = one, seen = known.seen;
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
    if (finding.start == nullptr) return;
    row.is_loop = finding.start->position != 0;
    row.first_line = finding.start->first_line, row.last_line = finding.start->last_line;
    static_cast<JitWhy&>(row) = why_of(*seen, finding);
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

JitReport make_jit_report(const CodeTime& time, const StackTable& stacks, double seconds, std::vector<JitSeen> states) {
  JitReport report;
  report.seconds = seconds;
  report.time = time;
  report.states = std::move(states);
  ReportMaker(stacks, report).make();
  return report;
}

}  // namespace luaspy
