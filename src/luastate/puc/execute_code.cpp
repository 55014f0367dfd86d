#include "luastate/puc/execute_code.h"

#include <algorithm>
#include <cstdint>

#include "luastate/native_functions.h"

namespace luaspy {
namespace {

// Compilers name parts of a function like this: luaV_execute.cold, luaV_execute.lto_priv.0,
// luaV_execute.part.3.
std::string_view without_suffix(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

// ldo.c, lvm.c, lapi.c: functions that carry a call and do no work of their own that a profile
// would name.
bool is_carrier(std::string_view name) {
  static constexpr std::string_view carriers[] = {
      "luaV_execute",     "luaV_finishOp",   "luaD_call",        "luaD_callnoyield", "luaD_rawrunprotected",
      "luaD_pcall",       "luaD_precall",    "luaD_pretailcall", "luaD_poscall",     "luaD_closeprotected",
      "luaD_hook",        "luaD_hookcall",   "luaD_callhook",    "luaD_throw",       "luaD_tryfuncTM",
      "luaG_traceexec",   "luaT_callTMres",  "luaT_callTM",      "luaT_trybinTM",    "lua_call",
      "lua_callk",        "lua_pcall",       "lua_pcallk",       "lua_cpcall",       "lua_resume",
      "lua_yieldk",       "f_call",          "f_Ccall",          "f_parser",         "ccall",
      "precallC",         "resume",          "unroll",           "resume_execute",   "closepaux",
      "callTMres",        "call_binTM",      "call_orderTM",     "dothecall",        "GCTM",
      "prepcallclosemth", "callclosemethod", "luaF_close",       "finishCcall",      "finishpcallk",
      "traceexec",        "callhook"};
  name = without_prefix(without_suffix(name));
  return std::ranges::find(carriers, name) != std::end(carriers);
}

bool is_execute(std::string_view name) { return without_prefix(without_suffix(name)) == "luaV_execute"; }

// lgc.c
bool is_collector(std::string_view name) {
  name = without_prefix(without_suffix(name));
  return name == "luaC_step" || name == "luaC_forcestep" || name == "luaC_fullgc" || name == "singlestep";
}

}  // namespace luaspy
