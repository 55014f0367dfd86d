#pragma once
// What a Lua core calls directly is its own: it is a library, and knows a program's functions by pointers only. So its
// functions are found that lie beyond the last one with a name. Pure.

#include <functional>
#include <span>
#include <vector>

#include "arch/machine_code.h"
#include "unwind/unwinder.h"

namespace luaspy {

struct ReachedCode {
  const MachineCode& code;
  // All functions of the module, ascending.
  std::span<const Unwinder::Range> functions;
  // The bytes of a function; empty if they cannot be read.
  std::function<std::vector<std::byte>(const Unwinder::Range&)> read;
  // Whether the function that starts there may be Lua's, as far as its symbol tells: one without a symbol may.
  std::function<bool(Address)> may_be_own;
};

// `own` and what lies beside it and is reached from there by direct calls and jumps, of functions that are near each
// other.
std::vector<Unwinder::Range> extended(std::vector<Unwinder::Range> own, const ReachedCode& reached);

}  // namespace luaspy
