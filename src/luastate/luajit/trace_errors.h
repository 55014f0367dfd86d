#pragma once
// Why LuaJIT aborts a trace (lj_traceerr.h), by number, and what may help.

#include <string>

#include "luastate/jit_reader.h"
#include "luastate/luajit/luajit_layout.h"

namespace luaspy {

// The name of an opcode, also of a function's header; "" if this LuaJIT has none of that number.
std::string opcode_name(const LuajitLayout& layout, unsigned number);

// As JitReader::reason() and JitReader::advice().
std::string trace_error(const LuajitLayout& layout, unsigned number, const JitDetail& detail,
                        const std::string& function);
std::string trace_error_advice(const LuajitLayout& layout, unsigned number, const JitDetail& detail);

}  // namespace luaspy
