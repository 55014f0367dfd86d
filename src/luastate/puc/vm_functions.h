#pragma once
// Recognises PUC Lua's internal functions (call_rules.h).

#include <string_view>
#include <unordered_map>

#include "luastate/call_rules.h"
#include "luastate/opcode.h"

namespace luaspy {

// The newest series with whose sources the rules were compared. With a later one nothing is recognised by those that
// hold until now.
inline constexpr Bytecode newest_with_vm_functions = Bytecode::lua55;

// Names by the start of a function. The same as in Lua's sources, apart from a "_" at the end.
std::unordered_map<Address, std::string_view> recognise_functions(const CallGraph& graph, Bytecode version);

}  // namespace luaspy
