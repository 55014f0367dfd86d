#pragma once
// What one tick of one thread ends in: a stack, or a loss with a name. Nothing else is possible.

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/heap_reading.h"
#include "base/ids.h"

namespace luaspy {

enum class Loss : std::uint8_t {
  none,
  late,         // the tick's time had passed when luaspy got to it
  skipped,      // the tick was left out, so that the target is not stopped for too large a share of the time
  not_stopped,  // the thread did not stop in time (uninterruptible sleep)
  refused,      // another process traces the thread, or luaspy has lost the right to
  ended,        // the thread ended while it was being looked at
  unreadable,   // its stack could not be read
  moved,        // a sleeping thread ran while it was being read
  left_out,     // by --only or --ignore
  elsewhere,   // the thread was on another CPU than the CPU sampler: such a stop would come at the thread's next system
               // call
  incomplete,  // the stop has not read everything that ran there
};
inline constexpr std::size_t loss_count = 11;
using LossCounts = std::array<std::int64_t, loss_count>;

constexpr std::string_view name(Loss loss) {
  constexpr std::array<std::string_view, loss_count> names = {"",
                                                              "late ticks",
                                                              "skipped ticks",
                                                              "not stopped in time",
                                                              "refused",
                                                              "thread ended",
                                                              "stack unreadable",
                                                              "woke while being read",
                                                              "left out as asked",
                                                              "on another CPU",
                                                              "not read whole"};
  return names[static_cast<std::size_t>(loss)];
}

// `losses`: by Loss. "3 late ticks, 1 refused"; "nothing".
std::string losses_text(const LossCounts& losses);

// How good the stacks are: counted over a run, shown at its end.
struct Quality {
  std::int64_t stacks = 0;           // with a stack at all
  std::int64_t with_lua = 0;         // on which a Lua state runs
  std::int64_t native_complete = 0;  // whose native part reaches the thread's first function
  std::int64_t not_joined = 0;       // Lua and native could not be joined
  std::int64_t lua_broken = 0;       // the Lua walk ended before base_ci
  std::int64_t lua_unusable = 0;     // a Lua state runs, but none of its calls could be read
  std::int64_t half_built = 0;       // the innermost call was being set up or torn down, and was left out
  std::int64_t calls_dropped = 0;    // other calls were left out because they were implausible
  std::int64_t relocated = 0;        // the Lua stack was being moved
  std::int64_t fresh_mismatch = 0;   // native luaV_execute frames and fresh Lua calls differ in number
  std::int64_t unclaimed = 0;        // a native frame of the VM belongs to none of the Lua states that were found
  std::int64_t at_system_call = 0;   // the stop came at the return from a system call
  std::int64_t remote = 0;           // it was stopped from another CPU, because luaspy did not run on the thread's own
  std::int64_t function_gone = 0;    // a Lua function was freed before it was read, so its place is not known
  std::int64_t no_debug_info = 0;    // the place of a Lua function is not known, because it was compiled without it

  Quality& operator+=(const Quality& other);
  Quality& operator-=(const Quality& other);
  bool operator==(const Quality& other) const = default;
};
// All its numbers, in their order in raw recordings. New ones are appended.
inline constexpr std::array quality_numbers = {
    &Quality::stacks,     &Quality::with_lua,       &Quality::native_complete, &Quality::not_joined,
    &Quality::lua_broken, &Quality::lua_unusable,   &Quality::half_built,      &Quality::calls_dropped,
    &Quality::relocated,  &Quality::fresh_mismatch, &Quality::unclaimed,       &Quality::at_system_call,
    &Quality::remote,     &Quality::function_gone,  &Quality::no_debug_info};
inline constexpr std::size_t first_quality_numbers = 10;  // the numbers that every raw recording has; recordings of
                                                          // older releases have only these
static_assert(sizeof(Quality) == quality_numbers.size() * sizeof(std::int64_t));

// What the VM was doing. LuaJIT records it (global_State.vmstate); for PUC Lua it follows from the
// innermost call and the native frames in it.
enum class VmState : std::uint8_t {
  none,  // no Lua runs on the thread
  interpreting,
  machine_code,  // LuaJIT: running a trace, or something that a trace called
  c,             // a C function that Lua called
  collecting,    // the garbage collector, except for the finalizers that it calls; PUC: if its code can be recognised
                 // (collector_code.h)
  exiting,       // LuaJIT: leaving a trace
  recording,     // LuaJIT: recording a trace
  optimising,    // LuaJIT: optimising it
  assembling,    // LuaJIT: generating machine code for it
};
inline constexpr std::size_t vm_state_count = 9;

constexpr std::string_view name(VmState state) {
  constexpr std::array<std::string_view, vm_state_count> names = {"no Lua",     "interpreter",       "machine code",
                                                                  "C function", "garbage collector", "trace exit",
                                                                  "recorder",   "optimiser",         "assembler"};
  return names[static_cast<std::size_t>(state)];
}

// The VM states grouped as users want to see them.
enum class Activity : std::uint8_t {
  lua,  // interpreted
  c,    // a C function that Lua called
  machine_code,
  collecting,
  compiling,  // what LuaJIT does apart from running the program
  no_lua,     // native code on a thread on which no Lua runs
};
inline constexpr std::size_t activity_count = 6;

constexpr Activity activity_of(VmState state) {
  switch (state) {
    case VmState::none:
      return Activity::no_lua;
    case VmState::interpreting:
      return Activity::lua;
    case VmState::machine_code:
      return Activity::machine_code;
    case VmState::c:
      return Activity::c;
    case VmState::collecting:
      return Activity::collecting;
    case VmState::exiting:
    case VmState::recording:
    case VmState::optimising:
    case VmState::assembling:
      break;
  }
  return Activity::compiling;
}

// What the weights of a profile count.
enum class Unit : std::uint8_t {
  nanoseconds,
  bytes,
  objects,
  samples,  // of what is not known: files of other programs may only count
};
inline constexpr std::size_t unit_count = 4;

constexpr std::string_view name(Unit unit) {
  constexpr std::array<std::string_view, unit_count> names = {"nanoseconds", "bytes", "objects", "samples"};
  return names[static_cast<std::size_t>(unit)];
}

// When a tick was, and what each of its samples stands for.
struct Tick {
  std::int64_t at_ns = 0;    // since the recording began
  std::int64_t weight = 0;   // in the profile's unit; nanoseconds: since the tick before
  std::int64_t samples = 1;  // a file that only counts says how many were alike: the weight is that of all of them
};

// What a sample says of its thread besides the stack. Profiles count samples apart that differ in it. A new fact is a
// field here, a field of the raw recording (output/raw.cpp, input/raw_reader.cpp), and what a format shows of it.
struct Attributes {
  enum class State : std::uint8_t {
    running,   // it executed
    sleeping,  // it was waiting for something, or was stopped by somebody else
    waiting,   // it could have run, but had no CPU
  } state = State::running;
  VmState vm_state = VmState::none;
  std::int16_t cpu = -1;        // the CPU that it had, or waited for; -1: not known, or it sleeps
  LabelsId labels = no_labels;  // what the user wants to know of it besides

  auto operator<=>(const Attributes&) const = default;
};

// One request among all of a recording. Not in raw recordings.
struct RequestIdentity {
  std::uint64_t id = 0;       // 0: the sample was for none, or it is not known for which
  std::int64_t begun_ms = 0;  // when the server says that it has begun, since 1970; 0: not known
  bool is_part = false;       // the label names a part of it: a subrequest
};

struct Sample : Attributes {
  Loss loss = Loss::none;
  bool again = false;  // the thread has stayed asleep since its last sample: stack, VM state and quality are those of
                       // that sample, and are not repeated
  StackId stack = empty_stack;  // of the sampler's table; empty with a loss
  std::int64_t stopped_ns = 0;  // how long the thread stood still
  Quality quality;
  std::vector<HeapReading> heaps;  // of the Luas that run on the thread; none if it sleeps, or with a loss
  RequestIdentity request;         // with --label request
};

constexpr std::string_view name(Sample::State state) {
  return state == Sample::State::running    ? "running"
         : state == Sample::State::sleeping ? "sleeping"
                                            : "waiting for a CPU";
}

}  // namespace luaspy
