#pragma once
// Prototype: a decoded copy of a Proto (lobject.h) or GCproto (lj_obj.h). It has a Lua function's
// place, the line of each instruction, and the bytecode that shows how the function names its
// callees. It outlives the target's object.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/word_hash.h"
#include "luastate/opcode.h"

namespace luaspy {

struct LocalVariable {
  std::string name;
  // First instruction where the variable is active (ldebug.c, luaF_getlocalname; lj_debug.c,
  // debug_varname).
  int start_pc = 0;
  int end_pc = 0;  // first instruction where it is dead
};

// Everything that names need (Lua::prototype). Every size is bounded; there is none if sizes exceed
// the limits of every compiler. Strings are cut at 200 bytes and otherwise raw (not yet printable).
struct Prototype {
  Address address = 0;
  Bytecode bytecode = Bytecode::lua54;
  // As Lua keeps it: "@file", "=name" or the chunk's text (cut at 200 bytes); "=?" if it has none.
  std::string source;
  Address source_string = 0;  // the whole of it: a string; 0 if it has none
  int line_defined = 0;       // 0 for a main chunk, and for LuaJIT's functions without debug information
  int last_line_defined = 0;
  int parameters = 0;
  Address code_address = 0;
  std::vector<std::uint32_t> code;
  std::vector<int> lines;  // one per instruction; empty in stripped bytecode
  // The constants that are strings, by the index that operands use.
  std::vector<std::optional<std::string>> constants;
  std::vector<std::string> upvalues;  // names; empty in stripped bytecode
  std::vector<LocalVariable> locals;  // in order of declaration; empty in stripped bytecode
  // Protos of the functions defined in it, in source order; at most most_children.
  std::vector<Address> children;
  static constexpr std::size_t most_children = 1 << 12;
  std::uint64_t fields_hash = 0;  // hash of further fields that identity() uses

  // A hash of what the compiler made of the source, without addresses: the same source has the same
  // identity wherever it is loaded. Never 0.
  std::uint32_t identity() const;

  // A hash of everything that names are made of: what identity() has, and the source, the lines and the
  // places of variables.
  std::uint64_t fingerprint() const;
  std::size_t size() const;  // bytes that it takes, about

  // lj_debug.c, lj_debug_getinfo: a LuaJIT chunk has at least one line.
  bool is_main() const { return line_defined == 0 && (!is_luajit(bytecode) || last_line_defined > 0); }
  // Does it say that its first parameter is called self?
  bool takes_self() const { return parameters > 0 && !locals.empty() && locals[0].name == "self"; }
  // Line of instruction `pc` (an index into code, clamped to it); line_defined if the bytecode has
  // no lines. 0 is never a line.
  int line(int pc) const;
};

// Calls `visit` with each local variable that is active at instruction `pc` and the number of its register, in order,
// until it returns false (lfunc.c, luaF_getlocalname; lj_debug.c, debug_varname: the n-th active one is in register n).
// Returns how many were active.
template <typename Visit>
int visit_locals(const Prototype& prototype, int pc, Visit visit) {
  int number = 0;
  for (const LocalVariable& local : prototype.locals) {
    if (local.start_pc > pc) break;
    if (pc >= local.end_pc) continue;
    if (!visit(local, number++)) break;
  }
  return number;
}

// Where a function was defined: a small part of a Prototype.
struct FunctionPlace {
  std::string source = "=?";
  int line_defined = 0;
  bool is_main = false;
};

}  // namespace luaspy
