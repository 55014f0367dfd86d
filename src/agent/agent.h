#pragma once
// `luaspy agent`: samples every Lua program of a host, always, and sends the profiles to an engine.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sending/engine_options.h"

namespace luaspy {

struct AgentOptions {
  std::string config;  // the file that has others of these; cli reads it
  EngineOptions engine;
  double rate = 19;                   // Hz; not a divisor of what programs do in a rhythm
  double every = 15;                  // s, between two batches
  bool idle = false;                  // sleeping threads, too
  bool allocations = false;           // who allocates, too: in short turns
  double max_stopped = 1;             // % of the time that a thread may stand still
  double max_cpu = 1;                 // % of one CPU that luaspy may use; it samples less often then
  std::vector<std::string> names;     // only processes whose name or command line has one of these; empty: all
  std::vector<std::string> excluded;  // and none of these
  double buffer_mb = 64;              // of what waits for an engine that is away
  double keep = 0;                    // s, of the past, that snapshots show; 0: nothing is kept
  double keep_mb = 16;                // MiB for it
  std::string snapshots;              // the folder for them
  std::vector<std::string> when;      // triggers: when to write one unasked (trigger.h)
  std::string socket;                 // where it listens, or the running one that is asked; "": default_socket()
  std::string metrics;                // where Prometheus finds its numbers (control.h, parse_address()); "": nowhere
  bool status = false;                // do not run: ask the one that runs how it is
  std::optional<int> snapshot;        // do not run: ask the one that runs for a snapshot of this process; 0: of all
};

// Until a signal asks to end. engine.to may be "": nothing is sent. Names of functions, their files and lines leave
// this machine; values and the text of Lua files do not. Returns the exit status.
Result<int> agent(const AgentOptions& options);

}  // namespace luaspy
