#pragma once
// What LuaJIT's compiler has decided in one global_State: what it compiled, what it gave up, and why. Nothing is
// stopped and nothing is written: one read has the compiler's own structure (jit_State) as it is at about one instant.
//
// All of it is read from a target that runs. Sizes and loops are bounded; what makes no sense is left out.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/memory.h"
#include "luastate/prototype.h"

namespace luaspy {

class Lua;

// One of the last 64 places at which a root trace was aborted (lj_jit.h, HotPenalty).
struct JitPenalty {
  Address start = 0;    // the instruction at which recording began
  unsigned value = 0;   // 72 after the first abort, then doubled; where it would exceed 60000, the place is blacklisted
  unsigned reason = 0;  // as of JitReader::reason()
  bool operator==(const JitPenalty&) const = default;
};
// How many attempts such a value stands for: LuaJIT adds at most 15 at each, less than what the next one doubles.
unsigned attempts_of(unsigned penalty_value);

// What an abort says beside its reason (jit_State.errinfo).
struct JitDetail {
  enum class Kind : std::uint8_t { unknown, none, number, function } kind = Kind::unknown;
  int number = 0;        // an opcode, of bytecode or of IR
  Address function = 0;  // GCfunc
  bool operator==(const JitDetail&) const = default;
};

// lj_jit.h, JIT_PARAMDEF. nullopt: this LuaJIT does not have it.
struct JitParameters {
  std::optional<int> maxtrace, maxrecord, hotloop, hotexit, tryside, sizemcode, maxmcode;  // the last two in KiB
  bool operator==(const JitParameters&) const = default;
};

// jit_State at one instant.
struct JitInstant {
  JitParameters parameters;
  std::vector<JitPenalty> penalties;  // those in use, in no order
  // The trace that is being recorded, or was recorded last.
  struct Recording {
    Address start = 0, pc = 0;  // where it began, and the last instruction that was looked at; 0: not known
    unsigned number = 0;        // of the trace; 0: it is over
    unsigned parent = 0, exit = 0;
    JitDetail detail;  // of the last abort, of this trace or one before
    bool operator==(const Recording&) const = default;
  } last;
  std::uint64_t machine_code = 0;  // bytes mapped for it
  bool has_machine_code = false;   // that is known
  Address code_top = 0;            // changes when a trace has been added
  std::uint32_t free_slot = 0, slots = 0;
  bool operator==(const JitInstant&) const = default;
};

enum class JitLink : std::uint8_t { none, root, loop, tail, up, down, interpreter, returns, stitch, unknown };

struct JitTrace {
  unsigned number = 0, root = 0, link = 0;  // root: 0: it is one itself
  unsigned parent = 0, exit = 0;            // of a side trace; parent: 0: it is a root trace, or not known
  unsigned link_type = 0;                   // as LuaJIT numbers it
  Address object = 0, start = 0, prototype = 0;
  std::uint32_t bytes = 0;  // of machine code
  // How often each exit was taken, as far as LuaJIT counts: up to the last attempt to compile a side trace there.
  std::vector<std::uint8_t> exits;
  static constexpr std::uint8_t exit_is_linked = 255;  // SNAPCOUNT_DONE: it leads to a side trace

  JitLink link_kind() const;
};

// Where a trace may begin in a function: its entry, or a loop.
struct JitStart {
  enum class State : std::uint8_t { open, compiled, blacklisted, never };  // never: LuaJIT does not count calls there
  std::uint32_t position = 0;                                              // of the instruction; 0: the entry
  std::uint32_t also = 0;  // a loop over pairs: the second instruction at which it may be counted; 0: none
  int line = 0, first_line = 0, last_line = 0;  // of the instruction; of what it is about
  State state = State::open;
  unsigned trace = 0;  // compiled
  // Instructions of its own code that LuaJIT never compiles; at most most_uncompiled.
  struct Uncompiled {
    std::string name;
    int opcode = 0, line = 0;
  };
  std::vector<Uncompiled> uncompiled;
  static constexpr std::size_t most_uncompiled = 3;
};

struct JitFunction {
  Address prototype = 0, code = 0;
  FunctionPlace place;
  std::uint32_t identity = 0;    // Prototype::identity: tells functions that begin on one line apart
  bool is_off = false;           // PROTO_NOJIT: jit.off() was called for it
  std::vector<int> lines;        // by instruction; empty: none are known
  std::vector<JitStart> starts;  // the entry first

  int line(std::uint32_t position) const { return position < lines.size() ? lines[position] : place.line_defined; }
};

// The table of strings.
struct JitStrings {
  std::uint64_t strings = 0, chains = 0;  // as LuaJIT counts them
  std::uint64_t chains_read = 0;          // all of them, or one in so many
  std::vector<std::uint32_t> longest;     // lengths of the longest chains of these, the longest first; at most 5
  bool complete = false;                  // each of these to its end
};

class JitReader {
 public:
  virtual ~JitReader() = default;
  JitReader(const JitReader&) = delete;
  JitReader& operator=(const JitReader&) = delete;

  // Whether the compiler is on (jit.on(), jit.off()). nullopt: not known, or LuaJIT was built without it.
  virtual std::optional<bool> is_on() const = 0;
  // nullopt: it was not found. It is looked for again, until it is. Costs some 2 us.
  virtual std::optional<JitInstant> instant() = 0;
  // All traces. Empty also while none were found.
  virtual std::vector<JitTrace> traces() = 0;
  // The addresses of all traces, by number: what changes when one comes or goes.
  virtual std::vector<Address> trace_objects() = 0;
  virtual std::optional<JitTrace> trace(Address object) = 0;

  virtual std::optional<JitFunction> function(Address prototype) const = 0;
  // The prototype of an instruction; 0: none.
  virtual Address prototype_of(Address instruction) const = 0;
  // Whether a trace may never again begin at this instruction. False also if jit.off() was called for its function.
  virtual bool is_blacklisted(Address start) const = 0;
  // Prototypes in the list of all objects, of which at most `most` are visited. False: the list changed meanwhile, or
  // is longer.
  virtual bool find_prototypes(std::uint64_t most, std::vector<Address>& found) const = 0;
  // Reads chains of about so many strings.
  virtual JitStrings strings(std::uint64_t most) const = 0;

  // "NYI: bytecode UCLO". `function`: what JitDetail::function is called; "": not known. A number that this LuaJIT's
  // release does not have is shown as such.
  virtual std::string reason(unsigned number, const JitDetail& detail, const std::string& function) const = 0;
  // What may help, in a sentence; "": nothing is known to.
  virtual std::string advice(unsigned number, const JitDetail& detail) const = 0;

 protected:
  JitReader() = default;
};

// Of a global_State of LuaJIT; nullptr: of PUC. `memory` must outlive it.
std::unique_ptr<JitReader> make_jit_reader(const Lua& lua, const Memory& memory, Address G);  // luas.cpp

}  // namespace luaspy
