#pragma once
// Functions: closures, their upvalues, and the prototypes of Lua functions.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/memory.h"
#include "luastate/offset.h"
#include "luastate/prototype.h"
#include "luastate/value_path.h"
#include "luastate/walk.h"

namespace luaspy {

// A closure, and what shows which function it is.
struct Function {
  Address proto = 0;  // Lua
  Address key = 0;    // as LuaCall.key; LuaJIT: also of a Lua function: its bytecode
};

class LuaFunctions {
 public:
  // `most_bytes`: there is none if its arrays have more; strings that may not fit are left out.
  virtual std::optional<Prototype> prototype(const Memory& memory, Address proto,
                                             std::size_t most_bytes = most_prototype_bytes) const = 0;
  static constexpr std::size_t most_prototype_bytes = 64 << 20;
  virtual std::optional<FunctionPlace> place(const Memory& memory, Address proto) const = 0;
  // A number computed from the fields of a Proto that do not change while it lives (LuaCall.mark);
  // 0 if there is none.
  virtual std::uint64_t mark(const Memory& memory, Address proto) const = 0;
  virtual std::optional<std::int32_t> line_defined(const Memory& memory, Address proto) const = 0;
  virtual std::optional<Function> function(const Memory& memory, Address G, Address closure) const = 0;

  // Does the instruction at which `caller` stands say what it has called?
  virtual bool is_named_by_caller(const LuaCall& call) const = 0;
  // May the function that runs not be the one that the caller's instruction names, and nothing tells?
  bool hides_tail_calls() const { return hides_tail_calls_; }
  // Compares the function at the end of `path` in `caller` with `callee`. `live`: the target's
  // memory as it is now. `stopped`: what the stop read, for the caller's registers; if LuaCall.func
  // is 0, they are not in memory.
  virtual Callee check_callee(const Memory& live, const Memory& stopped, Address G, const ValuePath& path,
                              const LuaCall& caller, const LuaCall& callee) const = 0;
  // The first instruction of the C function that `call` calls, if `call` is LuaJIT's function that
  // calls C functions by their type; else 0. `stopped`, `live`: as for check_callee().
  virtual Address ffi_function(const Memory&, const Memory&, const LuaCall&) const { return 0; }

  std::size_t upvalue_count(const Memory& memory, Address closure) const {
    return memory.get<std::uint8_t>(closure + upvalue_count_).value_or(0);
  }
  // Where the value of an upvalue of a Lua closure is; 0 if it cannot be read.
  virtual Address upvalue_slot(const Memory& memory, Address closure, std::size_t index) const = 0;
  // The same of a C closure, which holds them itself.
  virtual Address c_upvalue_slot(Address closure, std::size_t index) const = 0;

 protected:
  LuaFunctions(Offset upvalue_count, bool hides_tail_calls)
      : upvalue_count_(upvalue_count), hides_tail_calls_(hides_tail_calls) {}
  ~LuaFunctions() = default;

 private:
  Offset upvalue_count_;
  bool hides_tail_calls_;
};

}  // namespace luaspy
