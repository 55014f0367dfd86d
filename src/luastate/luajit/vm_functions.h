#pragma once
// Recognises LuaJIT's internal functions (call_rules.h).

#include <string_view>
#include <unordered_map>

#include "luastate/call_rules.h"

namespace luaspy {

// Names by the start of a function; none where all of LuaJIT was compiled as one file. What only the collector calls is
// "lj_gc": its parts are static functions.
std::unordered_map<Address, std::string_view> recognise_luajit_functions(const CallGraph& graph);

}  // namespace luaspy
