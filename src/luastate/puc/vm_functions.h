#pragma once
// Recognises PUC Lua's internal functions in a core without their symbols, by who calls whom. A host
// that can load C modules exports Lua's API; what lua_rawget calls is luaH_get, whatever a compiler
// made of the two. This holds where functions of different source files are not inlined into each
// other: after optimisation of the whole program (LTO) it does not, which some callers show. Then
// nothing is recognised. Pure.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/memory.h"
#include "luastate/opcode.h"

namespace luaspy {

// The functions of a core.
struct PucCode {
  // By the start of a function: the starts of functions that it calls or jumps to, each once; itself
  // too, if it calls itself.
  std::map<Address, std::vector<Address>> calls;
  // By name: the exported API, luaV_execute, luaC_step.
  std::map<std::string, Address, std::less<>> known;
};

// The newest series with whose sources the rules were compared. With a later one nothing is recognised by those that
// hold until now.
inline constexpr Bytecode newest_with_vm_functions = Bytecode::lua55;

// Names by the start of a function. The same as in Lua's sources, apart from a "_" at the end.
std::unordered_map<Address, std::string_view> recognise_functions(const PucCode& core, Bytecode version);

}  // namespace luaspy
