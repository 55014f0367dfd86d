#pragma once
// LuaJIT's machine code: which trace an instruction belongs to, and which Lua functions it is in,
// according to the trace's snapshots.
//
// A snapshot (lj_snap.c) is what the interpreter needs to continue after a guard: the pc, and the
// frames that the trace has inlined above the one it began in. A trace records nothing between two
// snapshots, so lines are those of the snapshot before.

#include <atomic>
#include <unordered_map>
#include <vector>

#include "luastate/luajit/luajit_layout.h"
#include "luastate/luajit/walk_luajit.h"
#include "luastate/trace.h"

namespace luaspy {

// The Lua frames that machine code is in, above the frame of jit_base.
struct InlinedCode {
  Address base = 0;                  // of the innermost frame
  Address pc = 0;                    // the next instruction of the innermost frame
  std::vector<InlinedFrame> frames;  // innermost first; empty: nothing is inlined there
};

class Traces {
 public:
  // `live`: the target's memory as it is now. Traces do not change until they are flushed; a
  // flushed trace is not found.
  explicit Traces(const Memory& live) : memory_(live) {}

  // The trace of the global state `G` whose machine code contains `pc`; nullptr if there is none.
  // Valid until the next call.
  const Trace* find(const LuajitLayout& layout, Address G, Address pc);
  const Trace* numbered(const LuajitLayout& layout, Address G, unsigned number);

  // `pc`: an instruction of `trace`; for a caller, the byte before the return address. `jit_base`:
  // the base in `L` that the trace works on. `stack`: the Lua stack, for functions that the trace
  // took from there.
  InlinedCode decode(Address G, Address L, const Trace& trace, Address pc, Address jit_base, const Memory& stack) const;

  // Where the interpreter continues after leaving `trace` by exit `number`: an exit has the number
  // of its snapshot (lj_asm.c).
  InlinedCode at_exit(Address G, Address L, const Trace& trace, std::uint32_t number, Address jit_base,
                      const Memory& stack) const;

  void forget() { states_.clear(); }

  // G_trace of the layout (luajit_layout.h), as the last one that was found has it; no_field: no
  // trace was found yet. Any thread may ask.
  Offset place() const { return place_; }

 private:
  struct State {
    LuajitLayout layout;
    bool has_layout = false;
    std::vector<Trace> traces;  // ascending by mcode
  };
  struct Snapshots {
    std::vector<std::byte> bytes;
    std::uint32_t count = 0, map_size = 0;
  };
  struct Snapshot {
    std::uint32_t map = 0, entries = 0, next_map = 0;
    std::uint32_t ref = 0;  // of the first IR instruction after it
  };
  Snapshots read_snapshots(const LuajitLayout& layout, const Trace& trace) const;
  static Snapshot snapshot(const LuajitLayout& layout, const Snapshots& snapshots, std::uint32_t number);
  State& state_of(const LuajitLayout& layout, Address G);
  void reload(State& state, Address G) const;
  bool is_current(const LuajitLayout& layout, const Trace& trace) const;
  std::vector<std::uint32_t> snapshot_offsets(const LuajitLayout& layout, const Trace& trace,
                                              std::span<const std::byte> snapshots, std::uint32_t count) const;
  InlinedCode decode_snapshot(const State& state, Address L, const Trace& trace, const Snapshot& snapshot,
                              Address jit_base, const Memory& stack) const;
  bool returns_between(const LuajitLayout& layout, const Trace& trace, std::uint32_t first, std::uint32_t last) const;
  Address function_constant(const LuajitLayout& layout, Address ir, std::uint32_t ref) const;

  const Memory& memory_;
  std::unordered_map<Address, State> states_;  // by global_State
  std::atomic<Offset> place_ = no_field;
};

}  // namespace luaspy
