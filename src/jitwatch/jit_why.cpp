#include "jitwatch/jit_why.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "jitwatch/jit_words.h"

namespace luaspy {
namespace {

const JitAttempts* attempts_at(const JitKnowledge& knowledge, const JitFunction& function, const JitStart& start) {
  for (const std::uint32_t position : {start.position, start.also}) {
    if (position == 0 && start.position != 0) continue;
    const auto found = knowledge.attempts.find(function.code + 4 * Address{position});
    if (found != knowledge.attempts.end()) return &found->second;
  }
  return nullptr;
}

// Exits of the tree of traces that were taken until LuaJIT tried to compile what is there, and lead to none.
std::vector<std::string> exits_of(const JitKnowledge& knowledge, unsigned root) {
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

}  // namespace

std::string_view name(WhyInterpreted why) {
  constexpr std::array<std::string_view, 8> names = {"not found", "compiler off", "function off", "blacklisted",
                                                     "aborted",   "compiled",     "never",        "not tried"};
  return names[static_cast<std::size_t>(why)];
}

JitFinding finding_at(const JitKnowledge& knowledge, const JitFunction& function, const JitStart& start) {
  JitFinding finding = {&start, attempts_at(knowledge, function, start)};
  using State = JitStart::State;
  const bool is_blacklisted = start.state == State::blacklisted ||
                              (finding.attempts != nullptr && finding.attempts->blacklisted);
  if (knowledge.is_on == false) finding.why = WhyInterpreted::compiler_off;
  else if (function.is_off) finding.why = WhyInterpreted::function_off;
  else if (is_blacklisted) finding.why = WhyInterpreted::blacklisted;
  else if (start.state == State::compiled) finding.why = WhyInterpreted::compiled;
  else if (finding.attempts != nullptr && finding.attempts->failed != 0) finding.why = WhyInterpreted::aborted;
  else finding.why = start.state == State::never ? WhyInterpreted::never : WhyInterpreted::not_tried;
  return finding;
}

JitWhy why_of(const JitSeen& seen, const JitFinding& finding) {
  JitWhy why;
  why.why = finding.why;
  if (finding.why == WhyInterpreted::compiled) {
    why.trace = finding.start->trace;
    why.exits = exits_of(*seen.knowledge, why.trace);
  }
  if (finding.attempts == nullptr) return why;
  why.at_least = forgets_attempts(*seen.knowledge);
  why.failed = finding.attempts->failed, why.penalty = finding.attempts->penalty;
  const bool is_failure = finding.why == WhyInterpreted::blacklisted || finding.why == WhyInterpreted::aborted;
  if (!is_failure || finding.attempts->aborts.empty()) return why;
  why.reason = abort_text(seen, finding.attempts->aborts.back(), finding.start);
  why.advice = advice_text(seen, finding.attempts->aborts.back(), finding.start);
  return why;
}

std::string why_text(const JitWhy& why) {
  const std::string reason = why.reason.empty() ? "" : ": " + why.reason;
  switch (why.why) {
    case WhyInterpreted::not_found:
      return "not known: luaspy did not find its prototype";
    case WhyInterpreted::compiler_off:
      return "the JIT compiler is off";
    case WhyInterpreted::function_off:
      return "JIT is off for it (jit.off)";
    case WhyInterpreted::blacklisted:
      if (why.failed == 0) return "blacklisted; LuaJIT no longer has the reason";
      return fmt::format("blacklisted after {}{}", attempts_text(why.failed, why.at_least), reason);
    case WhyInterpreted::aborted:
      return fmt::format("{} failed{}; penalty {} of 60000", attempts_text(why.failed, why.at_least), reason,
                         why.penalty);
    case WhyInterpreted::compiled:
      if (why.exits.empty()) return fmt::format("compiled (trace {})", why.trace);
      return fmt::format("compiled (trace {}), and left: {}", why.trace, joined(why.exits, ", "));
    case WhyInterpreted::never:
      return "no trace begins in a function with ...: it is compiled where a compiled function calls it";
    case WhyInterpreted::not_tried:
      break;
  }
  return "no attempt is known: not hot yet, or only as a part of what calls it";
}

}  // namespace luaspy
