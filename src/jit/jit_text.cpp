#include "jit/jit_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "jit/jit_verdict.h"
#include "profile/amount_text.h"

namespace luaspy {
namespace {

std::string time_text(const CodeTime& time) {
  const std::int64_t all = time.with_lua();
  const auto part = [&](std::string_view what, std::int64_t ns) {
    return fmt::format("{} {:.1f} %", what, percent_of(ns, all));
  };
  const std::int64_t compiling = time.of(VmState::recording) + time.of(VmState::optimising) +
                                 time.of(VmState::assembling);
  std::string text = fmt::format("Time: {}, {}, {}, {}, {}, {}\n", part("machine code", time.of(VmState::machine_code)),
                                 part("interpreter", time.of(VmState::interpreting)),
                                 part("C functions", time.of(VmState::c)), part("exits", time.of(VmState::exiting)),
                                 part("compiler", compiling), part("collector", time.of(VmState::collecting)));
  if (time.of(VmState::none) != 0)
    text += fmt::format("      and {} outside of Lua\n", amount_text(time.of(VmState::none), Unit::nanoseconds));
  return text;
}

std::string rows_text(const JitReport& report, std::size_t most) {
  const std::int64_t all = report.time.with_lua();
  std::string text;
  for (std::size_t i = 0; i < std::min(most, report.rows.size()); ++i) {
    const JitRow& row = report.rows[i];
    if (row.outside_ns() == 0) break;
    std::string where = row.function;
    if (row.is_loop) where += fmt::format(", loop {}-{}", row.first_line, row.last_line);
    text += fmt::format("{:6.1f} {:6.1f}  {}\n                 {}\n", percent_of(row.interpreted_ns, all),
                        percent_of(row.c_ns, all), printable(where), printable(why_text(row), 400));
    if (!row.advice.empty()) text += fmt::format("                 {}\n", row.advice);
  }
  if (text.empty()) return "";
  return "\nOutside of machine code, by function and loop:\ninterp%     C%\n" + text;
}

std::string limit_text(std::uint64_t used, const std::optional<int>& limit, Unit unit, std::int64_t scale) {
  const auto amount = [&](std::int64_t value) {
    return unit == Unit::bytes ? amount_text(value, unit) : fmt::format("{}", value);
  };
  const std::string text = amount(static_cast<std::int64_t>(used));
  return limit ? fmt::format("{} of at most {}", text, amount(std::int64_t{*limit} * scale)) : text;
}

std::string aborts_text(const JitSeen& seen, std::size_t most) {
  std::vector<std::pair<Address, const JitAttempts*>> failed;
  for (const auto& [start, attempts] : seen.knowledge->attempts) failed.emplace_back(start, &attempts);
  std::ranges::stable_sort(failed, [](const auto& a, const auto& b) {
    return std::pair(a.second->blacklisted, a.second->failed) > std::pair(b.second->blacklisted, b.second->failed);
  });
  std::string text;
  for (const auto& [start, attempts] : failed) {
    if (most-- == 0) {
      text += fmt::format("  … {} places in all\n", failed.size());
      break;
    }
    const std::string why = attempts->aborts.empty()
                                ? "not known why"
                                : abort_text(seen, attempts->aborts.back(), start_at(*seen.knowledge, start));
    text += fmt::format(
        "  {}: {}{}, {}\n", printable(place_text(attempts->start)),
        attempts->failed == 0 ? "before a flush" : attempts_text(attempts->failed, forgets_attempts(*seen.knowledge)),
        attempts->blacklisted ? ", blacklisted" : "", printable(why));
  }
  return text.empty() ? text : "Places from which no trace could be made:\n" + text;
}

std::string state_text(const JitSeen& seen, std::size_t most) {
  const JitKnowledge& knowledge = *seen.knowledge;
  std::string text = fmt::format("\nCompiler of process {}: {}", knowledge.pid,
                                 !knowledge.is_on   ? "not known whether it is on"
                                 : *knowledge.is_on ? "on"
                                                    : "off (jit.off)");
  if (!knowledge.last)
    return text +
           ". Its state was not found: this LuaJIT was built without it, or luaspy does not know this release.\n";
  const JitInstant& last = *knowledge.last;
  text += fmt::format("; traces: {}", limit_text(knowledge.traces.size(), last.parameters.maxtrace, Unit::objects, 1));
  text += "; machine code: ";
  text += last.has_machine_code ? limit_text(last.machine_code, last.parameters.maxmcode, Unit::bytes, 1024)
                                : "none was seen";
  text += fmt::format("; flushes seen: {}\n", knowledge.flushes);
  if (const std::optional<JitStrings>& strings = knowledge.strings; strings && strings->chains != 0) {
    text += fmt::format("String table: {} strings in {} chains", strings->strings, strings->chains);
    const std::string some = strings->chains_read < strings->chains
                                 ? fmt::format(" of {} that were read", strings->chains_read)
                                 : "";
    if (!strings->longest.empty()) text += fmt::format(", the longest{} have {}", some, joined(strings->longest, ", "));
    text += '\n';
  }
  if (knowledge.is_surveyed && !knowledge.has_all_functions)
    text += "Some functions may be missing: the list of all objects changed while it was read, or is very long.\n";
  return text + aborts_text(seen, most);
}

std::string exits_text(const JitTraceRow& row, int hotexit) {
  const JitTrace& trace = row.trace;
  std::vector<std::pair<int, std::size_t>> taken;
  for (std::size_t exit = 0; exit < trace.exits.size(); ++exit) {
    if (trace.exits[exit] != 0 && trace.exits[exit] != JitTrace::exit_is_linked)
      taken.emplace_back(-trace.exits[exit], exit);
  }
  std::ranges::sort(taken);
  constexpr std::size_t most = 3;
  std::string text;
  for (const auto& [exit, child] : row.children) {
    if (text.size() > 60) {
      text += ", …";
      break;
    }
    text += fmt::format("{}exit {} to trace {}", text.empty() ? "" : ", ", exit, child);
  }
  for (std::size_t i = 0; i < std::min(most, taken.size()); ++i) {
    const int count = -taken[i].first;
    text += fmt::format(
        "{}exit {} {}", text.empty() ? "" : "; ", taken[i].second,
        count >= hotexit ? fmt::format("failed {}x", count - hotexit + 1) : fmt::format("taken {}x", count));
  }
  return text;
}

std::string traces_text(const JitReport& report, std::size_t most) {
  if (report.traces.empty()) return "";
  const std::int64_t all = report.time.with_lua();
  std::string text = "\n Time%  Trace  Start, parent, link, bytes of machine code; exits\n";
  for (std::size_t i = 0; i < std::min(most, report.traces.size()); ++i) {
    const JitTraceRow& row = report.traces[i];
    const std::string parent = row.trace.parent == 0
                                   ? std::string()
                                   : fmt::format(", from trace {} exit {}", row.trace.parent, row.trace.exit);
    int hotexit = 10;
    for (const JitSeen& seen : report.states) {
      if (seen.knowledge->pid == row.pid && seen.knowledge->last)
        hotexit = seen.knowledge->last->parameters.hotexit.value_or(hotexit);
    }
    const std::string exits = exits_text(row, hotexit);
    text += fmt::format("{:6.1f} {:6}  {}{}, {}, {}{}{}\n", percent_of(row.ns, all), row.trace.number,
                        printable(place_text(row.start)), parent, link_text(row.trace), row.trace.bytes,
                        exits.empty() ? "" : "; ", exits);
  }
  if (report.traces.size() > most) text += fmt::format("        … {} traces in all\n", report.traces.size());
  return text;
}

}  // namespace

std::string jit_text(const JitReport& report, std::size_t rows) {
  std::string text = printable(report.verdict, 1000) + "\n\n";
  text += fmt::format("{:.1f} s, {}", report.seconds, count_of(report.time.samples, "sample"));
  if (report.time.lost != 0) text += fmt::format(", {} lost", report.time.lost);
  text += '\n' + time_text(report.time) + rows_text(report, rows) + traces_text(report, rows);
  for (const JitSeen& seen : report.states) text += state_text(seen, rows);
  return text;
}

std::string event_text(const JitSeen& seen, const JitEvent& event) {
  const std::string start = printable(place_text(event.start));
  const double seconds = static_cast<double>(event.at_ns) / 1e9;
  switch (event.kind) {
    case JitEvent::Kind::abort:
      return fmt::format("{:.3f} abort {}: {} (attempt {})\n", seconds, start, printable(abort_text(seen, event.abort)),
                         event.failed);
    case JitEvent::Kind::blacklisted:
      return fmt::format("{:.3f} blacklisted {} after {} attempts: {}\n", seconds, start, event.failed,
                         printable(abort_text(seen, event.abort)));
    case JitEvent::Kind::flush:
      return fmt::format("{:.3f} flush: all traces are thrown away\n", seconds);
    case JitEvent::Kind::trace:
      break;
  }
  const std::string parent = event.trace.parent == 0
                                 ? std::string()
                                 : fmt::format(", from trace {} exit {}", event.trace.parent, event.trace.exit);
  return fmt::format("{:.3f} trace {} {}{}, {}, {} bytes\n", seconds, event.trace.number, start, parent,
                     link_text(event.trace), event.trace.bytes);
}

}  // namespace luaspy
