#pragma once
// What is known of a Lua whose allocations are sampled, and its burst.

#include <memory>
#include <optional>
#include <vector>

#include "allocations/burst.h"
#include "allocations/byte_gate.h"
#include "allocations/growth_runs.h"
#include "luastate/heap_reader.h"
#include "sampling/process_tree.h"
#include "system/calls.h"

namespace luaspy {

// The burst of a Lua, while it is open.
struct OpenBurst {
  bool is_open = false;
  bool is_armed = false;    // false: interrupted
  double bytes = 0;         // of the program that it stands for
  std::int64_t wanted = 0;  // calls that grow
  std::vector<CallTrap::Call> calls;
  BurstSums sums;                                      // of these
  std::optional<std::int64_t> heap;                    // bytes, at the last probe since it was armed, or at its end
  int untrapped = 0;                                   // probes since then that saw changes without a call
  system::Clock::time_point armed{};                   // last
  bool stood_still = false;                            // the thread, then
  std::size_t costed = 0;                              // calls whose cost is in took_ns
  std::int64_t took_ns = 0;                            // of the program's time
  void begin(double its_bytes, std::int64_t number) {  // keeps its memory: allocating takes time in a stop
    is_open = true, is_armed = stood_still = false;
    bytes = its_bytes, wanted = number;
    calls.clear();
    sums = {}, heap = {}, costed = 0, took_ns = 0;
  }
};

// A Lua, and the thread that was last seen to run it.
struct Allocator {
  Allocator(Session& its, std::shared_ptr<Thread> its_thread, const ActiveState& found, std::uint64_t seed)
      : Allocator(its.target().memory(), its.pid(), std::move(its_thread), found, seed) {
    session = &its;
  }
  // One whose bursts are not read (Bursts::sample).
  Allocator(const Memory& its, pid_t process, std::shared_ptr<Thread> its_thread, const ActiveState& found,
            std::uint64_t seed)
      : memory(its), pid(process), thread(std::move(its_thread)), lua(*found.lua), G(found.G), gate(seed), look(its) {}

  Session* session = nullptr;
  const Memory& memory;
  pid_t pid;
  std::shared_ptr<Thread> thread;
  const Lua& lua;
  Address G;
  std::uint64_t identity = 0;  // as last read
  ByteGate gate;
  Address function = 0;  // with which it allocates; 0: not read yet
  StackReader::Prediction predicted;
  Sampler::Look look;
  std::unique_ptr<HeapReader> objects;  // nullptr: its lists are not known
  system::Clock::time_point probed{};
  std::int64_t heap_bytes = 0;  // then
  GrowthRuns runs;
  BurstSums usual;               // of its bursts
  bool seen_by_growth = false;   // and not by looks
  int chosen = 0;                // places at the gate for which no burst has begun
  std::int64_t next_number = 0;  // of calls of the next burst; 0: not drawn yet
  OpenBurst burst;
  bool gone = false;
  bool may_sleep = true;      // its thread sleeps now and then: a stop could come in a system call
  std::int64_t switches = 0;  // voluntary ones of its thread, without those for luaspy
  int calm_looks = 0;         // in a row, without such a switch
  double kept_bytes = 0;      // that bursts stood for that gave no sample: the next one stands for them

  // Whether it is another one than when this was asked last (Lua::identity): it was closed, and another one made at
  // its address, or lua_setallocf has given it another function.
  bool is_another();
  // Forgets what was learned of the one before. False: there is none, or one that `lua` does not fit.
  bool renew();
};

}  // namespace luaspy
