#pragma once
// Why a piece of code is interpreted, by what is known of a compiler.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace luaspy {

struct JitAttempts;
struct JitFunction;
struct JitKnowledge;
struct JitSeen;
struct JitStart;

// Why a piece of code is interpreted.
enum class WhyInterpreted : std::uint8_t {
  not_found,  // its prototype was not seen, so nothing is known
  compiler_off,
  function_off,
  blacklisted,
  aborted,    // and it may be tried again
  compiled,   // it is not: the time is before and between traces
  never,      // no trace begins there
  not_tried,  // no attempt is known
};
std::string_view name(WhyInterpreted why);

// What is known of one place where a trace may begin.
struct JitFinding {
  const JitStart* start = nullptr;        // nullptr: its function is not known
  const JitAttempts* attempts = nullptr;  // nullptr: none are known
  WhyInterpreted why = WhyInterpreted::not_found;
};
JitFinding finding_at(const JitKnowledge& knowledge, const JitFunction& function, const JitStart& start);

// The same as values for people.
struct JitWhy {
  WhyInterpreted why = WhyInterpreted::not_found;
  std::string reason;  // blacklisted, aborted: of the last abort, with its place; ""
  std::string advice;
  unsigned failed = 0, penalty = 0;
  bool at_least = false;           // it may have failed more often
  unsigned trace = 0;              // compiled
  std::vector<std::string> exits;  // compiled: those that are taken and lead to no trace, in words
};
// `finding`: with a start, of this Lua.
JitWhy why_of(const JitSeen& seen, const JitFinding& finding);
// "blacklisted after 11 attempts: NYI: bytecode FNEW at a.lua:17".
std::string why_text(const JitWhy& why);

}  // namespace luaspy
