#include "jitwatch/jit_words.h"

#include <fmt/format.h>

#include <array>

#include "luastate/names.h"

namespace luaspy {

std::string c_function_name(Names& names, const JitKnowledge& knowledge, Address closure) {
  const std::optional<Function> function = knowledge.lua->function(names.memory(), knowledge.G, closure);
  return function ? names.loaded_name({*knowledge.lua, knowledge.G, names.memory()}, function->key) : "";
}

bool forgets_attempts(const JitKnowledge& knowledge) {
  constexpr std::size_t ring = 64;  // lj_jit.h, PENALTY_SLOTS
  return knowledge.last && knowledge.last->penalties.size() >= ring;
}

std::string attempts_text(unsigned failed, bool at_least) {
  return fmt::format("{}{} attempt{}", at_least ? "at least " : "", failed, failed == 1 ? "" : "s");
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

}  // namespace luaspy
