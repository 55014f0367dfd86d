#pragma once
// The stream of sysprof, the profiler of time in tarantool/luajit ("ljp" of version 2, lj_sysprof.h): after a table of
// symbols (luajit_symbols.h) its samples, one after another, without times.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/sample.h"
#include "input/byte_reader.h"
#include "input/luajit_symbols.h"

namespace luaspy {

struct SysprofSample {
  // LJ_VMST_*, in their order.
  enum class State : std::uint8_t { interp, lfunc, ffunc, cfunc, gc, exit, record, opt, as, trace };
  // A call of the Lua stack.
  struct Call {
    enum class Kind : std::uint8_t { lua = 1, c, fast };
    Kind kind = Kind::lua;
    LuajitPlace place{};     // of lua and c
    std::uint64_t ffid = 0;  // of fast
  };
  State state = State::interp;
  std::vector<Call> calls;          // of Lua, outermost first; none unless Lua, a fast function or a C function ran
  std::vector<LuajitPlace> native;  // the C stack, outermost first. The writer leaves out its innermost frames.
  LuajitPlace trace{};              // of trace
};

// The samples, one after another, and the symbols as they are then. Returns what is wrong with the stream, or "".
// `see` returns false to end it there.
std::string each_sysprof_sample(ByteReader& in, LuajitSymbols& symbols,
                                const std::function<bool(const SysprofSample&)>& see);

// One stack of both: the calls of Lua where the C stack calls into Lua. Each part is a call, or a native frame.
struct SysprofPart {
  bool is_call = false;
  std::size_t index = 0;  // into calls or native
};
std::vector<SysprofPart> joined_stack(const SysprofSample& sample, const LuajitSymbols& symbols);

// In which state of luaspy's the VM was.
VmState vm_state_of(SysprofSample::State state);

}  // namespace luaspy
