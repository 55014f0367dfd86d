#include "luastate/puc/vm_functions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>

namespace luaspy {
namespace {

// `name` is the only function that all `callers` call and that has no name yet.
struct Rule {
  std::string_view name;
  Bytecode first, last;  // versions
  std::array<std::string_view, 3> callers;
  // What the source says in addition.
  enum class Also : std::uint8_t {
    nothing,
    only_they,  // nothing else calls it
    they_only,  // the first of them calls nothing else
    two,        // at most two functions call it
  } also = Also::nothing;
  std::string_view calls = {};   // it calls this
  std::string_view beside = {};  // the first caller calls this, too
};

constexpr Bytecode newest = newest_with_vm_functions;

// lapi.c and the files that it calls. A rule up to `newest` holds in all series since the first. Rules are tried until
// none finds anything new.
std::span<const Rule> rules() {
  using enum Bytecode;
  using enum Rule::Also;
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

class Recogniser {
 public:
  Recogniser(const PucCode& core, Bytecode version)
      : core_(core), version_(version), known_(core.known.begin(), core.known.end()) {
    for (const auto& [name, function] : core.known) named_.insert(function);
    for (const auto& [function, callees] : core.calls) {
      for (const Address callee : callees) callers_[callee].insert(function);
    }
    leave_out_index();
  }

  std::unordered_map<Address, std::string_view> run() {
    for (bool news = true; news;) {
      news = false;
      for (const Rule& rule : rules()) {
        if (version_ < rule.first || version_ > rule.last || known_.contains(rule.name)) continue;
        const std::optional<Address> function = find(rule);
        if (!function) continue;
        known_.emplace(rule.name, *function);
        named_.insert(*function);
        found_.emplace(*function, rule.name);
        news = true;
      }
    }
    const bool is_whole = std::ranges::all_of(never_inlined, [&](std::string_view name) {
      const auto function = known_.find(name);
      return function != known_.end() && !calls(function->second, function->second);
    });
    return is_whole ? std::move(found_) : std::unordered_map<Address, std::string_view>();
  }

 private:
  const std::vector<Address>& callees(Address function) const {
    static const std::vector<Address> none;
    const auto found = core_.calls.find(function);
    return found != core_.calls.end() ? found->second : none;
  }
  bool calls(Address caller, Address callee) const {
    return std::ranges::find(callees(caller), callee) != callees(caller).end();
  }
  // 0: it is not known.
  Address known(std::string_view name) const {
    const auto found = known_.find(name);
    return found != known_.end() ? found->second : 0;
  }

  // Nearly all API functions call index2value (5.1: index2adr), which is static. Where a compiler has
  // inlined it, something else may be called by many: so it gets no name.
  void leave_out_index() {
    constexpr int least = 7;
    std::map<Address, int> counts;
    for (const auto& [name, function] : core_.known) {
      if (!name.starts_with("lua_")) continue;
      for (const Address callee : callees(function)) counts[callee] += named_.contains(callee) ? 0 : 1;
    }
    const auto most = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
    if (most != counts.end() && most->second >= least) named_.insert(index_ = most->first);
  }

  std::optional<Address> find(const Rule& rule) const {
    std::vector<Address> callers;
    for (const std::string_view name : rule.callers) {
      if (name.empty()) continue;
      callers.push_back(known(name));
      if (callers.back() == 0) return {};
    }
    const std::vector<Address>& first = callees(callers.front());
    if (!rule.beside.empty() && (known(rule.beside) == 0 || !calls(callers.front(), known(rule.beside)))) return {};
    if (rule.also == Rule::Also::they_only &&
        std::ranges::count_if(first, [&](Address callee) { return callee != index_; }) != 1)
      return {};
    std::optional<Address> only;
    for (const Address callee : first) {
      const auto calls_it = [&](Address caller) { return calls(caller, callee); };
      if (named_.contains(callee) || !std::ranges::all_of(callers, calls_it) || !fits(rule, callee, callers)) continue;
      if (only) return {};
      only = callee;
    }
    return only;
  }
  bool fits(const Rule& rule, Address callee, const std::vector<Address>& callers) const {
    if (!rule.calls.empty() && (known(rule.calls) == 0 || !calls(callee, known(rule.calls)))) return false;
    const std::set<Address>& of_it = callers_.at(callee);
    if (rule.also == Rule::Also::two) return of_it.size() <= 2;
    if (rule.also != Rule::Also::only_they) return true;
    return std::ranges::all_of(
        of_it, [&](Address caller) { return caller == callee || std::ranges::find(callers, caller) != callers.end(); });
  }

  const PucCode& core_;
  Bytecode version_;
  std::map<std::string_view, Address> known_;
  std::set<Address> named_;  // functions that need no name any more
  Address index_ = 0;
  std::unordered_map<Address, std::set<Address>> callers_;
  std::unordered_map<Address, std::string_view> found_;
};

}  // namespace

std::unordered_map<Address, std::string_view> recognise_functions(const PucCode& core, Bytecode version) {
  return Recogniser(core, version).run();
}

}  // namespace luaspy
