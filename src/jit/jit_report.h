#pragma once
// The report of luaspy jit, as values: what the samples say, joined with what the compilers have decided.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "jit/jit_knowledge.h"
#include "jit/time_by_code.h"

namespace luaspy {

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

// A function, or one of its loops, that takes time outside of machine code.
struct JitRow {
  std::string function;  // as describe() shows it
  std::string file;
  int line_defined = 0;
  bool is_loop = false;
  int first_line = 0, last_line = 0;  // of the loop or function; 0: not known
  std::int64_t interpreted_ns = 0, c_ns = 0, machine_code_ns = 0;
  WhyInterpreted why = WhyInterpreted::not_found;
  std::string reason;  // of the last abort, with its place; ""
  std::string advice;
  unsigned failed = 0, penalty = 0;
  bool at_least = false;           // it may have failed more often
  unsigned trace = 0;              // compiled
  std::vector<std::string> exits;  // compiled: those that are taken and lead to no trace, in words
  std::int64_t outside_ns() const { return interpreted_ns + c_ns; }
};

struct JitTraceRow {
  std::int64_t ns = 0;
  pid_t pid = 0;
  JitTrace trace;
  CodePlace start;
  std::map<unsigned, unsigned> children;  // side traces, by the exit
};

// LuaJIT keeps 64 places: when it needs another one, it forgets the oldest, and how often that was tried.
bool forgets_attempts(const JitKnowledge& knowledge);
// "11 attempts".
std::string attempts_text(unsigned failed, bool at_least);

// What is seen of one Lua, and the names of the C functions in it.
struct JitSeen {
  const JitKnowledge* knowledge = nullptr;
  const JitReader* reader = nullptr;
  std::function<std::string(Address function)> function_name;
};

struct JitReport {
  double seconds = 0;
  CodeTime time;
  std::string verdict;
  std::vector<JitRow> rows;         // those that take most outside of machine code first
  std::vector<JitTraceRow> traces;  // those that take most first
  std::vector<JitSeen> states;
};

std::string place_text(const CodePlace& place);
// Where a trace may begin; nullptr: its function is not known.
const JitStart* start_at(const JitKnowledge& knowledge, Address start);
// "NYI: bytecode FNEW at a.lua:17". `start`: where it began, whose code may say more; or nullptr.
std::string abort_text(const JitSeen& seen, const JitAbort& abort, const JitStart* start = nullptr);
std::string advice_text(const JitSeen& seen, const JitAbort& abort, const JitStart* start);
// "loop", "root 3", "stitch", …
std::string link_text(const JitTrace& trace);

JitReport make_jit_report(const CodeTime& time, const StackTable& stacks, double seconds, std::vector<JitSeen> states);

}  // namespace luaspy
