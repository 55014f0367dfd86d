#pragma once
// What was seen of the compiler of one Lua, as values.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "luastate/jit_reader.h"

namespace luaspy {

// An instruction, as it was found when it mattered.
struct CodePlace {
  std::string file;  // as frames have it; "": not known
  int line_defined = 0, line = 0;
  std::uint32_t position = 0;  // 0: the entry of the function
  bool operator==(const CodePlace&) const = default;
};

// An abort, by what is known of it.
struct JitAbort {
  std::optional<unsigned> reason;  // nullopt: of one that has blacklisted its start, LuaJIT does not keep it
  JitDetail detail;
  CodePlace at;  // where it was aborted
  bool operator==(const JitAbort&) const = default;
};

// Everything that is known of attempts to compile a root trace from one place.
struct JitAttempts {
  CodePlace start;
  unsigned penalty = 0;  // as it was last; 0 after a flush
  unsigned failed = 0;   // attempts since the last flush
  bool blacklisted = false;
  std::vector<JitAbort> aborts;  // different ones, the last one last
};

struct JitEvent {
  enum class Kind : std::uint8_t { abort, blacklisted, flush, trace } kind = Kind::abort;
  std::int64_t at_ns = 0;  // since luaspy began
  CodePlace start;
  JitAbort abort;
  unsigned failed = 0;  // abort, blacklisted: attempts up to then
  JitTrace trace;
};

struct JitKnowledge {
  pid_t pid = 0;
  Address G = 0;
  const Lua* lua = nullptr;
  std::optional<bool> is_on;                 // nullopt: not known
  std::optional<JitInstant> last;            // nullopt: its jit_State was not found
  std::map<Address, JitAttempts> attempts;   // by the instruction where they began
  std::map<Address, JitFunction> functions;  // by prototype
  std::map<unsigned, JitTrace> traces;       // those that exist, by number
  std::map<unsigned, CodePlace> trace_starts;
  bool has_all_functions = false, is_surveyed = false;
  std::optional<JitStrings> strings;
  std::vector<JitEvent> events;  // in their order; at most most_events
  std::uint64_t events_left_out = 0;
  unsigned flushes = 0;
  static constexpr std::size_t most_events = 100'000, most_attempts = 10'000, most_aborts = 16;
};

}  // namespace luaspy
