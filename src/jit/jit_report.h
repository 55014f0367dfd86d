#pragma once
// The report of luaspy jit, as values: what the samples say, joined with what the compilers have decided.

#include <map>
#include <string>
#include <vector>

#include "jit/time_by_code.h"
#include "jitwatch/jit_why.h"
#include "jitwatch/jit_words.h"

namespace luaspy {

// A function, or one of its loops, that takes time outside of machine code.
struct JitRow : JitWhy {
  std::string function;  // as describe() shows it
  std::string file;
  int line_defined = 0;
  bool is_loop = false;
  int first_line = 0, last_line = 0;  // of the loop or function; 0: not known
  std::int64_t interpreted_ns = 0, c_ns = 0, machine_code_ns = 0;
  std::int64_t outside_ns() const { return interpreted_ns + c_ns; }
};

struct JitTraceRow {
  std::int64_t ns = 0;
  pid_t pid = 0;
  JitTrace trace;
  CodePlace start;
  std::map<unsigned, unsigned> children;  // side traces, by the exit
};

struct JitReport {
  double seconds = 0;
  CodeTime time;
  std::string verdict;
  std::vector<JitRow> rows;         // those that take most outside of machine code first
  std::vector<JitTraceRow> traces;  // those that take most first
  std::vector<JitSeen> states;
};

JitReport make_jit_report(const CodeTime& time, const StackTable& stacks, double seconds, std::vector<JitSeen> states);

}  // namespace luaspy
