#pragma once
// What LuaJIT's compiler has decided about the functions of one Lua, at about one instant.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/memory.h"
#include "jitwatch/jit_why.h"

namespace luaspy {

class Lua;
class Names;

// A Lua function of LuaJIT that a frame is in.
struct FunctionOfFrame {
  Address G = 0, prototype = 0;  // 0: none
};

// A place of a function at which a trace may begin.
struct CompilerPart {
  bool is_loop = false;               // else the entry
  int first_line = 0, last_line = 0;  // 0: not known
  JitWhy why;
  bool is_decided() const;  // there is something to say of it
};

struct CompilerFunction {
  std::string file;
  int line_defined = 0;
  bool is_off = false;              // jit.off() was called for it
  std::vector<unsigned> traces;     // that begin in it, side traces too
  std::vector<CompilerPart> parts;  // the entry first
  bool is_decided() const;          // there is something to say of it
};
// What there is to say of it, a sentence for each of its parts; at least one, unless it has no part.
std::vector<std::string> decisions_of(const CompilerFunction& function);

struct CompilerLook {
  bool is_found = false;      // the compiler's state; else only the bytecode was read
  std::optional<bool> is_on;  // nullopt: not known
  std::size_t traces = 0;
  bool has_all_functions = false;
  std::map<Address, CompilerFunction> functions;  // by prototype
};
// `memory` is that of process `pid`, whose names `names` knows. Nothing is stopped; takes as long as a walk over all
// objects of that Lua.
CompilerLook look_at_compiler(const Memory& memory, pid_t pid, const Lua& lua, Address G, Names& names);

}  // namespace luaspy
