#pragma once
// The name by which a Lua caller calls its callee, read from the caller's bytecode at the calling
// instruction. For the bytecode of 5.1 to 5.5 this follows ldebug.c (getfuncname /
// funcnamefromcode), for LuaJIT's lj_debug.c (lj_debug_funcname). Pure functions of a Prototype.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "luastate/prototype.h"
#include "luastate/value_path.h"

namespace luaspy {

struct CallName {
  std::string_view what;  // "global", "local", "method", "field", "upvalue", "constant", "metamethod", "for iterator"
  std::string name;
};

inline constexpr std::string_view iterator_name = "for iterator";

// The name of the function that instruction `pc` of `caller` is calling; nullopt where ldebug.c or
// lj_debug.c finds none. What they call differently is the same here in every Lua: a metamethod is
// `__add` (5.1 does not name it, 5.4 calls it `add`), and what a `for` calls is `for iterator` (5.1
// and LuaJIT call it like any value). `pc` is an index into caller.code; anything out of range is
// nullopt. Bounded work on any bytecode.
std::optional<CallName> callee_name(const Prototype& caller, int pc);

// For each function that is defined in `function`, in the order of its children: the local variable that its
// closures are first put into; empty if it is none. Bounded work on any bytecode.
std::vector<std::string> locals_of_closures(const Prototype& function);

// LuaJIT: the path to what instruction `pc` of `caller` calls, found by the same instructions that
// callee_name() follows. For other bytecode the root is unknown.
ValuePath callee_path(const Prototype& caller, int pc);

// The register that holds the function if `instruction` is an OP_CALL or OP_TAILCALL; nullopt for
// any other instruction.
std::optional<int> called_register(Bytecode bytecode, std::uint32_t instruction);

// How many arguments an instruction passes that is no tail call: its B (LuaJIT: its C), minus 1.
// nullopt for other instructions, and if it depends on what came before it (B is 0; CALLM).
std::optional<int> passed_arguments(Bytecode bytecode, std::uint32_t instruction);

// Is there an instruction in the function that may change this register?
bool is_assigned(const Prototype& function, int reg);

// Is `instruction` an OP_CALL or OP_TAILCALL (LuaJIT: BC_CALL and its variants)? If it calls a Lua
// function, that runs in the same luaV_execute (lvm.c). A function called as a metamethod or an
// iterator does not.
bool is_call(Bytecode bytecode, std::uint32_t instruction);
bool is_tail_call(Bytecode bytecode, std::uint32_t instruction);

}  // namespace luaspy
