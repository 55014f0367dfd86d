#pragma once
// What the Lua half and the merge need to know about native functions.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/frame.h"
#include "base/memory.h"
#include "luastate/lua.h"

namespace luaspy {

// LuaJIT's ->vm_exit_handler (vm_x64.dasc): stores jit_State.parent and exitno (the trace and the
// number of the exit taken), and calls lj_trace_exit.
struct TraceExit {
  Address return_address = 0;
  std::int32_t parent = 0, exitno = 0;  // offsets from DISPATCH
};

// If two Luas are linked into one program, the symbols of one have a prefix: mud_lua_pcallk.
std::string_view without_prefix(std::string_view symbol);
// Whether a symbol is a function of Lua's sources by its name: of the documented API and the standard
// libraries (lua_pcallk, luaL_ref, luaopen_string), or internal (PUC: luaV_execute; LuaJIT:
// lj_gc_step). Suffixes of compilers (.cold) do not matter. Other functions that begin with lua_ or
// luaL_ are their program's.
bool is_lua_name(std::string_view symbol, LuaKind kind);
// Whether it is a source file of Lua's core or of its standard libraries (lstrlib.c, lj_gc.c), by its
// name. The interpreter lua is a program that uses them.
bool is_lua_source(std::string_view file);

class NativeFunctions {
 public:
  virtual ~NativeFunctions() = default;
  // Is this frame luaV_execute, LuaJIT's virtual machine, or machine code made by LuaJIT?
  virtual bool executes_lua(const NativeFrame& frame) const = 0;
  // If the frame is LuaJIT's virtual machine calling lj_trace_exit: where it has stored the number
  // of the exit. Otherwise nullptr.
  virtual const TraceExit* trace_exit(const NativeFrame&) const { return nullptr; }
  // Is it one of the functions through which a step or a full run of PUC's collector goes? False if
  // that is not known, and for LuaJIT, which shows it in other ways.
  virtual bool collects(const NativeFrame&) const { return false; }
  // Is its name that of a function that only carries a call?
  virtual bool carries(const NativeFrame& frame) const = 0;
  // Is it in the same module as a Lua core?
  virtual bool in_core_module(const NativeFrame& frame) const = 0;
  // Is it Lua's own code: the VM, its API, the standard library? In a host that Lua is linked into,
  // other code is in the same module. maybe: nothing tells them apart.
  enum class LuaCode : std::uint8_t { no, maybe, yes };
  virtual LuaCode lua_code(const NativeFrame& frame) const = 0;
  // May there be code at this address, according to the mappings?
  virtual bool may_be_code(Address) const { return true; }
  // The machine code of the luaV_execute that `frame` is in; empty if it is not available.
  virtual std::vector<std::byte> code(const NativeFrame& frame) const = 0;
  // Its readable name: the symbol; without one, the module and the function's start in it; without
  // that, the module. Never a raw pc, so that samples of one function add up.
  // Valid until descriptions() changes.
  virtual const Frame& describe(const NativeFrame& frame) const = 0;
  // The same, by a function's first instruction.
  const Frame& describe_entry(Address entry) const;
  // Changes when functions may be described otherwise than before.
  virtual std::uint64_t descriptions() const { return 0; }
};

}  // namespace luaspy
