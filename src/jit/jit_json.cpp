#include "jit/jit_json.h"

#include <array>

#include "base/hex.h"
#include "base/json.h"
#include "base/version.h"
#include "jit/jit_verdict.h"
#include "luastate/names.h"

namespace luaspy {
namespace {

Json to_json(const CodePlace& place) {
  if (place.file.empty()) return Json();
  return {
      {"file", place.file}, {"line", place.line}, {"line_defined", place.line_defined}, {"entry", place.position == 0}};
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json abort_json(const JitSeen& seen, const JitAbort& abort) {
  JitAbort without_place = abort;
  without_place.at = {};
  return {{"number", or_null(abort.reason)},
          {"reason", abort.reason ? Json(abort_text(seen, without_place)) : Json()},
          {"at", to_json(abort.at)}};
}

Json trace_json(const JitTrace& trace, const CodePlace& start) {
  return {{"number", trace.number},
          {"start", to_json(start)},
          {"link", link_text(trace)},
          {"bytes", trace.bytes},
          {"root", trace.root},
          {"parent", trace.parent == 0 ? Json() : Json{{"trace", trace.parent}, {"exit", trace.exit}}}};
}

Json to_json(const JitRow& row, std::int64_t all) {
  return {{"function", row.function},
          {"file", row.file},
          {"line_defined", row.line_defined},
          {"is_loop", row.is_loop},
          {"first_line", row.first_line},
          {"last_line", row.last_line},
          {"interpreted_percent", percent_of(row.interpreted_ns, all)},
          {"c_percent", percent_of(row.c_ns, all)},
          {"machine_code_percent", percent_of(row.machine_code_ns, all)},
          {"state", name(row.why)},
          {"why", why_text(row)},
          {"advice", row.advice},
          {"attempts", row.failed},
          {"penalty", row.penalty},
          {"trace", row.why == WhyInterpreted::compiled ? Json(row.trace) : Json()}};
}

Json to_json(const JitTraceRow& row, std::int64_t all) {
  Json json = trace_json(row.trace, row.start);
  json["pid"] = row.pid;
  json["percent"] = percent_of(row.ns, all);
  Json& exits = json["exits"] = Json::array();
  for (unsigned exit = 0; exit < row.trace.exits.size(); ++exit) {
    const int count = row.trace.exits[exit];
    const auto child = row.children.find(exit);
    const bool is_counted = count != JitTrace::exit_is_linked;
    if (child != row.children.end() || (is_counted && count != 0))
      exits.add({{"exit", exit},
                 {"taken", is_counted ? Json(count) : Json()},
                 {"side_trace", child != row.children.end() ? Json(child->second) : Json()}});
  }
  return json;
}

Json json_of(const JitSeen& seen, const JitEvent& event) {
  constexpr std::array<std::string_view, 4> kinds = {"abort", "blacklisted", "flush", "trace"};
  Json json = {{"at", static_cast<double>(event.at_ns) / 1e9},
               {"pid", seen.knowledge->pid},
               {"kind", kinds[static_cast<std::size_t>(event.kind)]}};
  if (event.kind == JitEvent::Kind::flush) return json;
  if (event.kind == JitEvent::Kind::trace) {
    json["trace"] = trace_json(event.trace, event.start);
    return json;
  }
  json["start"] = to_json(event.start);
  json["attempt"] = event.failed;
  json["abort"] = abort_json(seen, event.abort);
  return json;
}

Json attempts_json(const JitSeen& seen) {
  Json all = Json::array();
  for (const auto& [start, attempts] : seen.knowledge->attempts) {
    Json aborts = Json::array();
    for (const JitAbort& abort : attempts.aborts) aborts.add(abort_json(seen, abort));
    all.add({{"start", to_json(attempts.start)},
             {"attempts", attempts.failed},
             {"penalty", attempts.penalty},
             {"blacklisted", attempts.blacklisted},
             {"aborts", std::move(aborts)}});
  }
  return all;
}

// By the bytecode: also what was blacklisted before luaspy came, and whose reason is gone.
Json blacklisted_json(const JitKnowledge& knowledge) {
  Json all = Json::array();
  for (const auto& [prototype, function] : knowledge.functions) {
    for (const JitStart& start : function.starts) {
      if (start.state != JitStart::State::blacklisted) continue;
      all.add({{"file", chunk_name(function.place.source)},
               {"line_defined", function.place.line_defined},
               {"line", start.line},
               {"entry", start.position == 0}});
    }
  }
  return all;
}

Json state_json(const JitSeen& seen) {
  const JitKnowledge& knowledge = *seen.knowledge;
  Json json = {{"pid", knowledge.pid},
               {"global_state", hex(knowledge.G)},
               {"lua", knowledge.lua->name()},
               {"compiler_on", or_null(knowledge.is_on)},
               {"found", knowledge.last.has_value()},
               {"traces", knowledge.traces.size()},
               {"flushes", knowledge.flushes},
               {"all_functions", knowledge.has_all_functions}};
  if (knowledge.last) {
    const JitParameters& set = knowledge.last->parameters;
    json["parameters"] = {{"maxtrace", or_null(set.maxtrace)}, {"maxrecord", or_null(set.maxrecord)},
                          {"hotloop", or_null(set.hotloop)},   {"hotexit", or_null(set.hotexit)},
                          {"tryside", or_null(set.tryside)},   {"sizemcode", or_null(set.sizemcode)},
                          {"maxmcode", or_null(set.maxmcode)}};
    json["machine_code_bytes"] = knowledge.last->has_machine_code ? Json(knowledge.last->machine_code) : Json();
  }
  if (const std::optional<JitStrings>& strings = knowledge.strings)
    json["strings"] = {{"strings", strings->strings},
                       {"chains", strings->chains},
                       {"chains_read", strings->chains_read},
                       {"longest", strings->longest},
                       {"complete", strings->complete}};
  json["attempts"] = attempts_json(seen);
  json["blacklisted"] = blacklisted_json(knowledge);
  json["events"] = Json::array();
  for (const JitEvent& event : knowledge.events) json["events"].add(json_of(seen, event));
  json["events_left_out"] = knowledge.events_left_out;
  return json;
}

}  // namespace

std::string jit_json(const JitReport& report) {
  const CodeTime& time = report.time;
  const std::int64_t all = time.with_lua();
  Json states = Json::object();
  for (std::size_t i = 0; i < vm_state_count; ++i)
    states[name(static_cast<VmState>(i))] = static_cast<double>(time.all[i]) / 1e9;
  Json json = {{"version", 1},
               {"luaspy", version},
               {"seconds", report.seconds},
               {"samples", time.samples},
               {"lost", time.lost},
               {"verdict", report.verdict},
               {"time", std::move(states)},
               {"functions", Json::array()},
               {"traces", Json::array()},
               {"compilers", Json::array()}};
  for (const JitRow& row : report.rows) json["functions"].add(to_json(row, all));
  for (const JitTraceRow& row : report.traces) json["traces"].add(to_json(row, all));
  for (const JitSeen& seen : report.states) json["compilers"].add(state_json(seen));
  return json.text();
}

std::string event_json(const JitSeen& seen, const JitEvent& event) { return json_of(seen, event).line(); }

}  // namespace luaspy
