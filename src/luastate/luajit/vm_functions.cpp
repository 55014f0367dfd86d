#include "luastate/luajit/vm_functions.h"

#include <algorithm>
#include <map>
#include <set>

namespace luaspy {
namespace {

// lj_api.c, and the files that it calls, of the releases from 2.1.0-beta3 on. Compared with the symbols of those of
// 2022-03 and 2026-08.
constexpr CallRule luajit_rules[] = {
    {"lj_state_growstack1", {"lua_pushnil", "lua_pushboolean"}},
    {"lj_gc_step", {"lua_createtable", "lua_pushlstring", "lua_newthread"}},
    {"lj_str_new", {"lua_pushlstring", "lua_pushstring"}},
    {"lj_tab_new_ah", {"lua_createtable"}},
    {"lj_func_newC", {"lua_pushcclosure"}},
    {"lj_err_msg", {"lua_next", "lua_newuserdata"}},
    {"lj_udata_new", {"lua_newuserdata"}},
    {"lj_state_new", {"lua_newthread"}},
    {"lj_tab_next", {"lua_next"}},
    {"lj_meta_cat", {"lua_concat"}},
    {"lj_tab_get", {"lua_rawget"}},
    {"lj_tab_getinth", {"lua_rawgeti"}},
    {"lj_tab_set", {"lua_rawset"}},
    {"lj_tab_setinth", {"lua_rawseti"}},
    {"lj_meta_tget", {"lua_gettable"}},
    {"lj_meta_tset", {"lua_settable"}},
    {"lj_gc_fullgc", {"lua_gc"}},
    {"lj_bcwrite", {"lua_dump"}},
    {"lj_strfmt_pushvf", {"lua_pushvfstring", "lua_pushfstring"}},
    {"lj_strscan_num", {"lua_tonumber", "lua_tointeger"}},
    {"lj_obj_equal", {"lua_rawequal"}},
    {"lj_meta_comp", {"lua_lessthan"}},
    {"lj_meta_equal", {"lua_equal"}},
    {"lj_strfmt_number", {"lua_tolstring", "lua_objlen"}},
    {"lj_tab_len", {"lua_objlen"}},
    {"lj_gc_barrierf", {"lua_setmetatable", "lua_setupvalue"}},
    {"lj_debug_getinfo", {"lua_getinfo"}},
    {"lj_debug_frame", {"lua_getstack"}},
    {"lj_debug_addloc", {"luaL_where"}},
    // What these call.
    {"lj_mem_newgco", {"lj_func_newC"}},
    {"lj_mem_realloc", {"lj_udata_new"}},
    {"gc_onestep", {"lj_gc_step", "lj_gc_fullgc"}},
    {"lj_gc_separateudata", {"lua_close", "gc_onestep"}},
    {"lj_tab_setstr", {"luaL_newmetatable", "lj_tab_set"}},
    {"lj_tab_new", {"luaL_newmetatable"}},
    {"lj_tab_newkey", {"lj_tab_set", "lj_tab_setstr", "lj_tab_setinth"}},
    {"lj_strscan_scan", {"lj_strscan_num"}},
};

constexpr std::string_view luajit_never_inlined[] = {"lj_tab_next", "lj_bcwrite", "lj_func_newC", "lj_udata_new",
                                                     "lj_state_new"};
constexpr std::string_view collector_name = "lj_gc";

// Whether each source file was compiled by itself. Distributions put all of LuaJIT into one unit (ljamalg.c; Debian
// does): then anything may be inlined into anything, and the functions of a file are not next to each other. These are
// all of lj_debug.c, of which there are 5 KB.
bool is_of_files(const CallGraph& graph) {
  constexpr Address largest = 16 << 10;
  Address first = ~Address{0}, last = 0;
  for (const std::string_view name : {"lua_getstack", "lua_getlocal", "lua_setlocal", "lua_getinfo"}) {
    const auto known = graph.known.find(name);
    if (known == graph.known.end()) return false;
    first = std::min(first, known->second), last = std::max(last, known->second);
  }
  return last - first < largest;
}

// Functions without a name that only the collector, or such functions, call.
void add_collector(const CallGraph& graph, std::unordered_map<Address, std::string_view>& names) {
  std::set<Address> inside;
  for (const auto& [function, name] : names) {
    if (name == "gc_onestep" || name == "lj_gc_fullgc" || name == "lj_gc_step") inside.insert(function);
  }
  std::map<Address, std::vector<Address>> callers;
  for (const auto& [function, callees] : graph.calls) {
    for (const Address callee : callees) callers[callee].push_back(function);
  }
  std::set<Address> others;
  for (const auto& [name, function] : graph.known) others.insert(function);
  for (bool news = true; news;) {
    news = false;
    for (const auto& called : callers) {
      const Address callee = called.first;
      const std::vector<Address>& from = called.second;
      if (inside.contains(callee) || others.contains(callee) || names.contains(callee)) continue;
      if (!std::ranges::all_of(from, [&](Address caller) { return caller == callee || inside.contains(caller); }) ||
          std::ranges::none_of(from, [&](Address caller) { return inside.contains(caller); }))
        continue;
      inside.insert(callee);
      news = true;
    }
  }
  for (const Address function : inside) names.try_emplace(function, collector_name);
}

}  // namespace

std::unordered_map<Address, std::string_view> recognise_luajit_functions(const CallGraph& graph) {
  if (!is_of_files(graph)) return {};
  std::unordered_map<Address, std::string_view> names = recognise_by_calls(graph, luajit_rules, luajit_never_inlined);
  if (!names.empty()) add_collector(graph, names);
  return names;
}

}  // namespace luaspy
