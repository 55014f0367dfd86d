#pragma once
// Prototype: a decoded copy of a Proto (lobject.h) or GCproto (lj_obj.h): what a Lua function is
// called, which line an instruction is on, and the bytecode from which a caller's view of its
// callee's name is read. It outlives the target's object.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "luastate/dialect.h"

namespace luaspy {

struct LocalVariable {
  std::string name;
  int start_pc = 0;  // first instruction where the variable is active (ldebug.c, luaF_getlocalname; lj_debug.c,
                     // debug_varname)
  int end_pc = 0;    // first instruction where it is dead
};

struct Prototype {
  Address address = 0;
  Bytecode bytecode = Bytecode::lua54;
  std::string source;    // as Lua keeps it: "@file", "=name" or the chunk's text (cut at 200 bytes); "=?" without one
  int line_defined = 0;  // 0 for a main chunk, and for LuaJIT's functions without debug information
  int last_line_defined = 0;
  int parameters = 0;
  Address code_address = 0;
  std::vector<std::uint32_t> code;
  std::vector<int> lines;                             // one per instruction; empty in stripped bytecode
  std::vector<std::optional<std::string>> constants;  // the strings among the constants, by the index that operands
                                                      // have
  std::vector<std::string> upvalues;                  // names; empty in stripped bytecode
  std::vector<LocalVariable> locals;                  // in order of declaration; empty in stripped bytecode
  std::vector<Address> children;  // Protos of the functions in it, in the order of the source; at most most_children
  static constexpr std::size_t most_children = 1 << 12;
  std::uint64_t fields_hash = 0;  // of what identity() takes beside the above

  // Made of what the compiler made of the source, and of no address: the same source has the same
  // one wherever it is loaded. Never 0.
  std::uint32_t identity() const;

  // lj_debug.c, lj_debug_getinfo: a LuaJIT chunk has at least one line.
  bool is_main() const { return line_defined == 0 && (!is_luajit(bytecode) || last_line_defined > 0); }
  // Line of instruction `pc` (an index into code, clamped to it); line_defined when the bytecode
  // has no lines, 0 never means a line.
  int line(int pc) const;
};

// Reads the Proto or GCproto at `address` with all that names need. Every size is bounded; a Proto
// that is not one, or that says sizes beyond any compiler's limits, is nullopt. Strings are cut at
// 200 bytes and otherwise raw (not yet printable).
std::optional<Prototype> read_prototype(const Memory& memory, const Dialect& dialect, Address address);
std::optional<Prototype> read_prototype(const Memory& memory, const Layout& layout, Address address);

// Adds to a hash that identity() goes by.
void mix(std::uint64_t& hash, std::uint64_t value);
void mix(std::uint64_t& hash, std::string_view text);

// What a function knows of its place: a small part of the above.
struct FunctionPlace {
  std::string source;
  int line_defined = 0;
  bool is_main = false;
};
std::optional<FunctionPlace> read_place(const Memory& memory, const Dialect& dialect, Address address);

}  // namespace luaspy
