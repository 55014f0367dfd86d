#pragma once
// What a Lua caller calls its callee: read from the caller's bytecode at the calling instruction, as ldebug.c does
// (getfuncname / funcnamefromcode), for the bytecode of 5.1 to 5.5. Pure functions of a Prototype.

#include <optional>
#include <string>
#include <string_view>

#include "luastate/prototype.h"

namespace luaspy {

struct CallName {
  std::string_view what;  // "global", "local", "method", "field", "upvalue", "constant", "metamethod", "for iterator"
  std::string name;
};

// The name of the function that instruction `pc` of `caller` is calling; nullopt where ldebug.c finds none.
// `pc` is an index into caller.code; anything out of range is nullopt. Bounded work on any bytecode.
std::optional<CallName> callee_name(const Prototype& caller, int pc);

// The register that holds the function if `instruction` is an OP_CALL; nullopt for any other instruction.
std::optional<int> called_register(Bytecode bytecode, std::uint32_t instruction);

// Is `instruction` an OP_CALL or OP_TAILCALL? The callee, if a Lua function, then runs in the same luaV_execute (lvm.c). It does not
// if it is called as a metamethod or an iterator.
bool is_call(Bytecode bytecode, std::uint32_t instruction);

}  // namespace luaspy
