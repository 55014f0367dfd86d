#pragma once
// What a report about a process says, as values: doctor_text.h and doctor_json.h print them. None of them has
// contents of the Lua program, arguments or an environment.

#include <sys/types.h>

#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/sample.h"
#include "luastate/collector_state.h"
#include "luastate/reported.h"
#include "luastate/why_not.h"

namespace luaspy {

class AddressSpace;
class Process;
class StackReader;

// Lines "Name: value" of a file below /proc.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

struct SystemFacts {
  std::string name, release, machine, distribution, load;
  long cpus = 0;
  NamedValues rights;  // luaspy's own
  std::string ptrace_scope, perf_event_paranoid;
  std::string may_not_stop;  // why; "": it may
  bool may_log_switches = false;
};

struct ProcessFacts {
  pid_t pid = 0;
  NamedValues status, memory;
  std::vector<std::pair<std::string, std::string>> namespaces;  // "user", and "luaspy's", "its own", "not readable"
  std::string program, called;                                  // called: "" if as the file
};

struct StateFacts {
  Address G = 0, main_thread = 0;
  std::string lua;
  std::string misfit;  // why its cross-links do not hold; "": they do
  CollectorState collector;
  std::vector<std::pair<std::string, std::optional<std::int64_t>>> fields;  // offsets in global_State; nullopt: not
                                                                            // found
};

// The code that executes Lua in one image.
struct InterpreterFacts {
  std::string module;  // "": cannot be read
  Address start = 0;
  struct Execute {
    std::string address;  // "lua5.4+0x17920"
    std::size_t bytes = 0;
    int score = 0;
    std::string symbol;  // ""
  };
  std::vector<Execute> executes;  // PUC
  std::string collector;          // an address; ""
  struct Vm {
    std::string start, end;  // addresses
    std::uint64_t frame_bytes = 0;
    std::string also_saves;
    std::size_t sequences = 0;
    bool has_trace_exit = false;
  };
  std::optional<Vm> vm;  // LuaJIT
};

struct NativeFacts {
  std::string address, step, name;
  Address sp = 0;
  std::vector<std::string> is;  // "machine code", "executes Lua", ...
};

// One look at a thread.
struct LookFacts {
  std::string lost;  // why there is none; ""
  std::string state, vm_state;
  std::int64_t stopped_ns = 0;
  Quality quality;
  // Outermost first: how many frames of a kind ("Lua", "C", "native") follow each other, or the name of a marker (0).
  std::vector<std::pair<std::string, std::size_t>> shape;
  struct State {
    Address L = 0, G = 0, boundary = 0;
    std::string lua;
  };
  std::vector<State> states;
  std::size_t stack_bytes = 0;
  Address stack_start = 0;
  bool in_full = false;
  std::vector<NativeFacts> natives;  // innermost first, those in the middle left out
  std::size_t native_count = 0;      // with those that were left out
};

struct ThreadFacts {
  pid_t tid = 0;
  std::string state, system_call;         // the letter; "": it does not sleep
  double on_cpu = 0, waited_for_cpu = 0;  // seconds
  std::vector<LookFacts> looks;
};

struct TrialFacts {
  RowTrial trial;
  bool suggested = false;  // by the files
};

struct ModuleFacts {
  std::string path, build_id;
  bool deleted = false;
  Address start = 0;
  std::optional<std::uint64_t> bytes;  // of addresses; nullopt: it cannot be read as a module
  std::uint64_t eh_frame_hdr_bytes = 0;
  std::uint64_t functions_described = 0;  // by call frame information
  bool has_file = false;                  // that is what is mapped
  std::optional<std::size_t> functions;   // of an image with a Lua
};

struct MappingFacts {
  Address start = 0, end = 0;
  std::string flags, kind;
};

struct DoctorReport {
  std::time_t time = 0;
  SystemFacts system;
  std::string refusal;                  // why there is no more than this; ""
  std::optional<ProcessFacts> process;  // all that follows is empty without it
  std::vector<LuaImage> images;
  std::vector<std::string> searched;  // files with code
  std::vector<ThreadFacts> threads;
  std::size_t threads_left_out = 0;
  std::vector<StateFacts> states;
  std::vector<InterpreterFacts> interpreters;
  std::size_t stack_words = 0;  // that could point to a lua_State
  std::uint64_t searched_bytes = 0;
  std::vector<TrialFacts> on_stacks, in_memory;
  std::vector<ModuleFacts> modules;
  std::vector<MappingFacts> mappings;
};

SystemFacts system_facts();
ProcessFacts process_facts(const Process& process);
std::vector<ModuleFacts> module_facts(const StackReader& reader);
std::vector<MappingFacts> mapping_facts(const AddressSpace& space);
// Of the Luas (doctor_lua.cpp).
std::vector<StateFacts> state_facts(const Memory& memory, const StackReader& reader);
std::vector<InterpreterFacts> interpreter_facts(const StackReader& reader);
// "lua5.4+0x17920": the module that contains the address and the address within that module's file;
// otherwise the kind of memory.
std::string address_text(const StackReader& reader, Address address);
// Its numbers that are not 0, with their names.
std::vector<std::pair<std::string, std::int64_t>> quality_facts(const Quality& quality);

}  // namespace luaspy
