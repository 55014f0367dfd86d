#include "luastate/puc/vm_functions.h"

#include <array>
#include <span>
#include <vector>

namespace luaspy {
namespace {

// A rule of the series from `first` to `last`; otherwise as CallRule.
struct Rule {
  std::string_view name;
  Bytecode first, last;
  std::array<std::string_view, 3> callers;
  CallRule::Also also = CallRule::Also::nothing;
  std::string_view calls = {}, beside = {};
};

constexpr Bytecode newest = newest_with_vm_functions;

// lapi.c and the files that it calls. A rule up to `newest` holds in all series since the first.
std::span<const Rule> rules() {
  using enum Bytecode;
  using enum CallRule::Also;
  static constexpr Rule all[] = {
      // lapi.c
      {"luaH_next", lua51, newest, {"lua_next"}, only_they},
      {"luaU_dump", lua51, newest, {"lua_dump"}, only_they},
      {"luaF_newCclosure", lua51, lua51, {"lua_pushcclosure"}},
      {"luaF_newCclosure", lua52, newest, {"lua_pushcclosure"}, only_they},
      {"luaS_newudata", lua51, lua53, {"lua_newuserdata"}, only_they},
      {"luaS_newudata", lua54, newest, {"lua_newuserdatauv"}, only_they},
      {"luaH_getn", lua51, lua51, {"lua_objlen", "luaV_execute"}},
      {"luaH_getn", lua52, newest, {"lua_rawlen"}},
      {"luaO_pushvfstring", lua51, newest, {"lua_pushfstring", "lua_pushvfstring"}},
      {"luaS_newlstr", lua51, newest, {"lua_pushlstring", "lua_concat"}},
      {"luaS_new", lua52, newest, {"lua_pushstring"}},
      {"luaV_concat", lua51, newest, {"lua_concat"}},
      {"luaH_get", lua51, newest, {"lua_rawget"}},
      {"luaH_getnum", lua51, lua51, {"lua_rawgeti"}},
      {"luaH_getint", lua52, newest, {"lua_rawgeti"}},
      {"luaC_barrierback", lua51, newest, {"lua_rawset", "lua_rawseti"}},
      {"luaH_set", lua51, lua53, {"lua_rawset"}},
      {"luaH_set", lua54, newest, {"lua_rawset"}, nothing, {}, "luaC_barrierback"},
      {"luaH_setnum", lua51, lua51, {"lua_rawseti"}},
      {"luaH_setint", lua52, newest, {"lua_rawseti"}},
      {"luaC_barrierf", lua51, lua51, {"lua_setfenv"}},
      {"luaC_barrier", lua53, newest, {"lua_copy"}},
      {"luaC_checkfinalizer", lua53, newest, {"lua_setmetatable"}, nothing, {}, "luaC_barrier"},
      {"luaV_gettable", lua51, lua53, {"lua_gettable"}, they_only},
      {"luaV_settable", lua51, lua53, {"lua_settable"}, they_only},
      {"luaV_finishget", lua53, newest, {"lua_gettable", "lua_geti"}, nothing, {}, "luaH_get"},
      {"luaV_finishset", lua53, newest, {"lua_settable", "lua_seti"}, nothing, {}, "luaC_barrierback"},
      {"luaV_objlen", lua52, newest, {"lua_len"}},
      {"luaO_rawequalObj", lua51, lua51, {"lua_rawequal"}},
      {"luaV_equalobj", lua52, newest, {"lua_rawequal"}},
      {"luaV_tonumber", lua51, lua51, {"lua_tonumber"}},
      {"luaV_tonumber", lua52, newest, {"lua_tonumberx"}},
      {"luaV_tointeger", lua53, newest, {"lua_tointegerx"}},
      {"luaO_str2num", lua53, newest, {"lua_stringtonumber"}},
      {"luaV_tostring", lua51, lua52, {"lua_tolstring"}},
      {"luaO_tostring", lua53, newest, {"lua_tolstring"}},
      {"luaO_tostringbuff", lua55, newest, {"lua_numbertocstring"}},
      {"luaO_arith", lua53, newest, {"lua_arith"}},
      {"luaD_growstack", lua51, lua51, {"lua_checkstack"}},
      {"luaD_growstack", lua54, newest, {"lua_checkstack"}},
      {"luaD_rawrunprotected", lua51, newest, {"lua_newstate", "lua_resume"}},
      {"luaD_call", lua51, lua51, {"lua_call"}},
      {"luaD_call", lua52, newest, {"lua_callk", "lua_pcallk"}},
      {"luaD_callnoyield", lua53, newest, {"lua_callk"}},
      {"luaD_pcall", lua51, lua51, {"lua_pcall"}},
      {"luaD_pcall", lua52, newest, {"lua_pcallk"}},
      {"luaH_new", lua51, newest, {"lua_createtable", "lua_getinfo"}},
      {"luaH_resize", lua52, newest, {"lua_createtable"}},
      {"luaF_close", lua54, newest, {"lua_settop"}},
      {"luaF_newtbcupval", lua54, newest, {"lua_toclose"}},
      {"luaH_getstr", lua54, lua54, {"lua_getfield"}, nothing, {}, "luaV_finishget"},
      {"close_state", lua52, newest, {"lua_close"}},
      {"luaS_hash", lua52, lua54, {"lua_newstate"}},
      {"luaG_errormsg", lua51, lua53, {"lua_error"}},
      {"luaG_errormsg", lua54, newest, {"lua_error", "luaG_runerror"}},
      {"luaD_throw", lua54, newest, {"lua_error"}},
      // What these call.
      {"luaC_newobj", lua52, newest, {"luaH_new", "luaF_newCclosure"}},
      {"luaM_realloc", lua51, lua51, {"luaH_new", "luaF_newCclosure", "luaS_newlstr"}},
      {"luaM_realloc", lua52, lua53, {"luaC_newobj"}},
      {"luaM_malloc", lua54, newest, {"luaC_newobj", "luaH_resize"}},
      {"luaM_toobig", lua51, newest, {"luaS_newlstr", "luaS_newudata"}},
      {"luaS_resize", lua51, lua52, {"luaS_newlstr"}},
      {"internshrstr", lua53, newest, {"luaS_newlstr"}, two, "luaC_newobj"},
      {"luaO_str2d", lua51, lua52, {"luaV_tonumber"}},
      {"l_str2dloc", lua53, newest, {"luaO_str2num"}},
      {"tostringbuff", lua54, lua54, {"luaO_tostring"}},
      {"luaG_runerror", lua51, lua52, {"luaH_next", "luaV_gettable"}},
      {"luaG_runerror", lua53, newest, {"luaH_next", "luaV_finishget", "luaD_growstack"}},
      {"mainposition", lua51, lua53, {"luaH_next", "luaH_get"}},
      {"getgeneric", lua54, newest, {"luaH_next", "luaH_get"}},
      {"luaH_realasize", lua54, lua54, {"luaH_next", "luaH_getn"}},
      {"newkey", lua51, lua51, {"luaH_set"}},
      {"luaH_newkey", lua52, lua54, {"luaH_set"}},
      {"luaD_precall", lua51, newest, {"luaD_call", "luaV_execute"}, nothing, "luaD_growstack"},
      {"luaT_trybinTM", lua53, newest, {"luaO_arith", "luaV_execute"}},
      {"luaO_rawarith", lua54, newest, {"luaO_arith"}},
      {"luaT_callTM", lua53, lua53, {"luaV_equalobj", "luaV_objlen"}, nothing, "luaD_call"},
      {"luaT_callTMres", lua54, newest, {"luaV_equalobj", "luaV_objlen"}, nothing, "luaD_call"},
      {"luaT_gettm", lua53, newest, {"luaV_equalobj", "luaV_objlen", "luaV_finishget"}},
      {"luaH_getshortstr", lua53, lua54, {"luaT_gettm"}},
      {"luaH_Hgetshortstr", lua55, newest, {"luaT_gettm"}},
      {"luaC_fullgc", lua54, newest, {"lua_gc", "internshrstr"}},
  };
  return all;
}

// If these are not what they should be, functions of different files are inlined into each other.
constexpr std::string_view never_inlined[] = {"luaH_next", "luaU_dump", "luaF_newCclosure", "luaS_newudata"};

}  // namespace

std::unordered_map<Address, std::string_view> recognise_functions(const CallGraph& graph, Bytecode version) {
  std::vector<CallRule> of_version;
  for (const Rule& rule : rules()) {
    if (version >= rule.first && version <= rule.last)
      of_version.push_back({rule.name, rule.callers, rule.also, rule.calls, rule.beside});
  }
  return recognise_by_calls(graph, of_version, never_inlined);
}

}  // namespace luaspy
