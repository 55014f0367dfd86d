// Compares names, lines and sources of Lua functions as luaspy reads them with lua_getinfo of the
// Lua that this is linked with. g++ -std=c++20 -O2 -Isrc -isystem $LUA/src tests/oracle/oracle.cpp
// src/luastate/{bytecode,prototype,layout,puc}.cpp $LUA/src/liblua.a -lm -ldl
//
// There are two comparisons. `check`, called by a script in every way a function can be called,
// walks the real stack, call by call. `all` puts a function under a suspended frame and moves its
// saved pc over every instruction, so that lua_getinfo answers for calls that are never made.
// Arguments, if any, are Lua files, of which every instruction is compared too.

extern "C" {
#include "lauxlib.h"
#include "lfunc.h"
#include "lgc.h"
#include "lobject.h"
#include "lopcodes.h"
#include "lstate.h"
#include "lua.h"
#include "lualib.h"
#include "lundump.h"
}

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector_fields.h"
#include "compare.h"
#include "heap_fields.h"
#include "luastate/bytecode.h"
#include "luastate/prototype.h"
#include "luastate/puc/layouts.h"
#include "luastate/puc/puc_lua.h"
#include "luastate/puc/puc_opcodes.h"
#include "luastate/puc/walk_puc.h"
#include "puc_heap_oracle.h"
#include "script.h"
#include "value_fields.h"

using namespace luaspy;

namespace {

Layout layout{};

// The shape of CallInfo in this Lua.
#if LUA_VERSION_NUM == 501
CallInfo* frame_of(lua_State* L, const lua_Debug& ar) { return ar.i_ci == 0 ? nullptr : L->base_ci + ar.i_ci; }
CallInfo* caller_of(CallInfo* ci) { return ci - 1; }
Proto*& proto_of(CallInfo* ci) { return clvalue(ci->func)->l.p; }
const Instruction*& saved_pc(CallInfo* ci) { return ci->savedpc; }
bool name_is_in_code(CallInfo* ci) { return !(isLua(ci) && ci->tailcalls > 0); }
#else
CallInfo* frame_of(lua_State*, const lua_Debug& ar) { return ar.i_ci; }
CallInfo* caller_of(CallInfo* ci) { return ci->previous; }
const Instruction*& saved_pc(CallInfo* ci) { return ci->u.l.savedpc; }
template <typename Info>
TValue* function_of(Info* ci) {  // 5.4.5 and later: a union; 5.4: a stack value
  if constexpr (requires { ci->func.p->val; }) return &ci->func.p->val;
  else if constexpr (requires { ci->func->val; }) return &ci->func->val;
  else return ci->func;
}
Proto*& proto_of(CallInfo* ci) { return clLvalue(function_of(ci))->p; }
bool name_is_in_code(CallInfo* ci) { return (ci->callstatus & CIST_TAIL) == 0; }
#endif

// True if lua_getinfo names this frame without looking at the caller's code: hooks and finalizers,
// which the walker handles. The function that a finalizer interrupts is marked (lgc.c, GCTM); up to
// 5.4.3 the mark names the interrupted function itself.
bool named_by_status([[maybe_unused]] CallInfo* ci) {
#ifdef CIST_FIN
  if (((ci->callstatus | caller_of(ci)->callstatus) & CIST_FIN) != 0) return true;
#endif
#if LUA_VERSION_NUM >= 503
  return (caller_of(ci)->callstatus & CIST_HOOKED) != 0;
#else
  return false;
#endif
}

int pc_of(CallInfo* ci) { return static_cast<int>(saved_pc(ci) - proto_of(ci)->code) - 1; }

std::optional<Prototype> prototype_of(const Proto* proto) {
  return PucLua(layout).prototype(OwnMemory(), reinterpret_cast<Address>(proto));
}

void expect(const char* what, std::string_view expected, std::string_view got, const Proto* where, int pc) {
  expect_at(what, expected, got, where ? where->linedefined : -1, pc);
}
void expect(const char* what, int expected, int got, const Proto* where, int pc) {
  expect_at(what, expected, got, where ? where->linedefined : -1, pc);
}

constexpr int patch = LUA_RELEASE[8] - '0';  // "Lua 5.4.4"

// Point releases whose wording differs from the last one of their series, which luaspy follows.
bool older_wording(const lua_Debug& ar, const std::optional<CallName>& name) {
  const std::string_view lua = ar.name ? ar.name : "";
  if (LUA_VERSION_NUM == 503 && patch <= 3)
    return !name && lua == "__index";  // its name for any instruction that does not call
  if (LUA_VERSION_NUM == 504 && patch <= 2)
    return name && (name->name == "lt" || name->name == "le") && (lua == "order" || lua.empty());
  return false;
}

// Makes ldebug.c's words of a name that luaspy has in the same words for every Lua. False: 5.1 has
// none, or other ones.
bool is_lua_wording(CallName& name) {
  if (LUA_VERSION_NUM == 501) return name.what != "metamethod" && name.what != "for iterator";
  if (LUA_VERSION_NUM >= 504 && name.what == "metamethod") name.name.erase(0, std::string_view("__").size());
  return true;
}

void compare_name(const lua_Debug& ar, const std::optional<Prototype>& caller, const Proto* where, int pc) {
  std::optional<CallName> name;
  if (caller) name = callee_name(*caller, pc);
  if (name && !is_lua_wording(*name)) return;
  if (older_wording(ar, name)) return;
  expect("namewhat", ar.namewhat, name ? name->what : "", where, pc);
  expect("name", ar.name ? std::string_view(ar.name).substr(0, 200) : "", name ? name->name.c_str() : "", where, pc);
}

void compare_function(const lua_Debug& ar, const std::optional<Prototype>& function, const Proto* where, int pc) {
  if (!function) return expect("prototype", "readable", "unreadable", where, pc);
  expect("source", std::string_view(ar.source).substr(0, 200), function->source.c_str(), where, pc);
  expect("linedefined", ar.linedefined, function->line_defined, where, pc);
  expect("lastlinedefined", ar.lastlinedefined, function->last_line_defined, where, pc);
  expect("what", ar.what, function->is_main() ? "main" : "Lua", where, pc);
  const bool stripped = ar.currentline <= 0;
  expect("stripped", stripped, function->lines.empty(), where, pc);
  expect("currentline", stripped ? function->line_defined : ar.currentline, function->line(pc), where, pc);
}

// Compares the walker on the same stack: every CallInfo from the innermost to the base, and its
// kind. All calls except this C function wait, so that their saved pcs are exact.
void compare_walk(lua_State* co) {
  LuaWalk walk;
  walk_puc(OwnMemory(), OwnMemory(), layout, reinterpret_cast<Address>(co), {.innermost = 300'000}, walk);
  const auto number = [](auto value) { return std::to_string(reinterpret_cast<Address>(value)); };
  std::size_t i = 0;
  lua_Debug ar;
  for (int level = 0; lua_getstack(co, level, &ar) != 0; ++level) {
    CallInfo* ci = frame_of(co, ar);
    if (ci == nullptr) continue;
    const LuaCall call = i < walk.calls.size() ? walk.calls[i] : LuaCall{};
    ++i;
    expect("CallInfo", number(ci), std::to_string(call.ci), nullptr, level);
    expect("is Lua", isLua(ci) ? 1 : 0, call.is_lua(), nullptr, level);
    lua_getinfo(co, "f", &ar);
    if (isLua(ci)) {
      expect("Proto", number(proto_of(ci)), std::to_string(call.proto), nullptr, level);
      expect("saved pc", number(saved_pc(ci)), std::to_string(call.saved_pc), nullptr, level);
    } else {
      expect("entry", number(lua_tocfunction(co, -1)), std::to_string(call.entry), nullptr, level);
    }
    lua_pop(co, 1);
    expect("tail call", !name_is_in_code(ci), call.tail, nullptr, level);
  }
  expect("calls", static_cast<int>(i), static_cast<int>(walk.calls.size()), nullptr, 0);
}

// check([co])
int check(lua_State* L) {
  lua_State* co = lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
  lua_Debug ar;
  compare_walk(co);
  for (int level = 0; lua_getstack(co, level, &ar) != 0; ++level) {
    CallInfo* ci = frame_of(co, ar);
    if (ci == nullptr) continue;  // 5.1: a frame that a tail call lost
    lua_getinfo(co, "nSl", &ar);
    ++count.frames;
    if (isLua(ci)) compare_function(ar, prototype_of(proto_of(ci)), proto_of(ci), pc_of(ci));
    CallInfo* caller = caller_of(ci);
    if (named_by_status(ci)) continue;
    if (name_is_in_code(ci) && isLua(caller)) {
      compare_name(ar, prototype_of(proto_of(caller)), proto_of(caller), pc_of(caller));
    } else {
      expect("namewhat", "", ar.namewhat, nullptr, 0);
    }
  }
  return 0;
}

// `co` is suspended in a C function called by a Lua function, whose Proto and pc are replaced for a
// moment.
void compare_instructions(lua_State* co, Proto* proto) {
  lua_Debug callee, function;
  lua_getstack(co, 0, &callee);
  lua_getstack(co, 1, &function);
  CallInfo* ci = frame_of(co, function);
  Proto* const real_proto = proto_of(ci);
  const Instruction* const real_pc = saved_pc(ci);
  proto_of(ci) = proto;
  const std::optional<Prototype> copy = prototype_of(proto);
  // Naming a call looks at all the code before it: of very long functions only a part is compared.
  const int step = proto->sizecode > 8192 ? proto->sizecode / 512 : 1;
  for (int pc = 0; pc < proto->sizecode; pc += pc < proto->sizecode - 200 ? step : 1) {
    saved_pc(ci) = proto->code + pc + 1;
    lua_getinfo(co, "n", &callee);
    lua_getinfo(co, "Sl", &function);
    ++count.instructions;
    compare_name(callee, copy, proto, pc);
    compare_function(function, copy, proto, pc);
  }
  proto_of(ci) = real_proto;
  saved_pc(ci) = real_pc;
  for (int i = 0; i < proto->sizep; ++i) compare_instructions(co, proto->p[i]);
}

Proto* proto_at_top(lua_State* L) { return static_cast<LClosure*>(const_cast<void*>(lua_topointer(L, -1)))->p; }

// all(f)
int all(lua_State* L) {
  lua_settop(L, 1);
  lua_State* co = lua_newthread(L);
  lua_getglobal(co, "suspended");
#if LUA_VERSION_NUM >= 504
  int results = 0;
  lua_resume(co, L, 0, &results);
#elif LUA_VERSION_NUM >= 502
  lua_resume(co, L, 0);
#else
  lua_resume(co, 0);
#endif
  lua_pushvalue(L, 1);
  lua_gc(L, LUA_GCSTOP, 0);
  compare_instructions(co, proto_at_top(L));
  lua_gc(L, LUA_GCRESTART, 0);
  return 0;
}

int append(lua_State*, const void* piece, size_t size, void* into) {
  if (size > 0) static_cast<std::string*>(into)->append(static_cast<const char*>(piece), size);
  return 0;
}

// strip(f): string.dump cannot strip in 5.1 and 5.2.
int strip(lua_State* L) {
  lua_settop(L, 1);
  std::string dump;
  luaU_dump(L, proto_at_top(L), append, &dump, 1);
  lua_pushlstring(L, dump.data(), dump.size());
  return 1;
}

bool run(lua_State* L, int load_status, const char* what) {
  if (load_status == 0 && lua_pcall(L, 0, 0, 0) == 0) return true;
  std::printf("%s: %s\n", what, lua_tostring(L, -1));
  return false;
}

bool run_script(lua_State* L, int programs) {
  lua_pushinteger(L, programs);
  lua_setglobal(L, "PROGRAMS");
  return run(L, luaL_loadbuffer(L, names_script, std::char_traits<char>::length(names_script), "@script.lua"),
             "script");
}

lua_State* new_state() {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushnil(L);  // an upvalue makes it a closure; the libraries' functions are light ones from 5.2 on
  lua_pushcclosure(L, check, 1);
  lua_setglobal(L, "check");
  lua_register(L, "all", all);
  lua_register(L, "strip", strip);
  lua_pushinteger(L, LUA_VERSION_NUM);
  lua_setglobal(L, "VERSION");
  lua_pushliteral(L, LUA_RELEASE);
  lua_setglobal(L, "RELEASE");
  run(L, luaL_loadstring(L, "local yield = coroutine.yield function suspended() yield() end"), "suspended");
  return L;
}

const Layout* this_layout() {
  const std::string_view release = LUA_RELEASE;
  for (const Layout& row : layouts()) {
    if (release.substr(4, 3) != row.series) continue;
    if (row.first_patch <= patch && patch <= row.last_patch && row.value_size == sizeof(TValue)) return &row;
  }
  return nullptr;
}

// Compares the opcode table with lopcodes.h: argument widths, number of opcodes, which of them set
// A.
void compare_opcodes() {
  const Encoding& encoding = encoding_of(layout.bytecode);
  // LuaMetaTeX includes a pre-release of 5.5.0, without OP_GETVARG and OP_ERRNNIL before the last
  // two.
  const bool prerelease = LUA_VERSION_NUM == 505 && NUM_OPCODES == 83;
  const int opcodes = prerelease ? NUM_OPCODES - 2 : NUM_OPCODES;
  if (!prerelease) expect("opcodes", opcodes, static_cast<int>(encoding.opcodes.size()), nullptr, 0);
  std::uint32_t bits = 0x9e3779b9;
  for (int round = 0; round < 1000; ++round) {
    bits = bits * 1664525 + 1013904223;
    const Instruction i = bits;
    expect("opcode", GET_OPCODE(i), encoding.opcode.of(i), nullptr, round);
    expect("A", GETARG_A(i), encoding.a.of(i), nullptr, round);
    expect("B", GETARG_B(i), encoding.b.of(i), nullptr, round);
    expect("C", GETARG_C(i), encoding.c.of(i), nullptr, round);
    expect("Bx", GETARG_Bx(i), encoding.bx.of(i), nullptr, round);
#if LUA_VERSION_NUM >= 504
    expect("k", GETARG_k(i), encoding.k.of(i), nullptr, round);
    expect("jump", GETARG_sJ(i), encoding.jump.signed_of(i), nullptr, round);
#else
    expect("jump", GETARG_sBx(i), encoding.jump.signed_of(i), nullptr, round);
#endif
#if LUA_VERSION_NUM >= 502
    expect("Ax", GETARG_Ax(i), encoding.ax.of(i), nullptr, round);
#endif
  }
  for (int op = 0; op < opcodes; ++op) {
    const Opcode& opcode = encoding.opcodes[static_cast<std::size_t>(op)];
    if (LUA_VERSION_NUM == 502 && opcode.name == "TEST") continue;  // see puc_opcodes.h
    const bool iterator = opcode.sets == Sets::from_a_plus_2;
    expect("sets A", testAMode(op) != 0, opcode.sets != Sets::nothing && !iterator, nullptr, op);
  }
}

// A layout with one wrong offset must be detected.
bool notices(lua_State* L, const char* field, Offset Layout::*offset, int by) {
  const Layout right = layout;
  layout.*offset = static_cast<Offset>(layout.*offset + by);
  const long before = count.differ;
  planted = true;
  run_script(L, 4);
  planted = false;
  layout = right;
  const long noticed = std::exchange(count.differ, before) - before;
  if (noticed == 0) std::printf("a wrong %s goes unnoticed\n", field);
  return noticed > 0;
}

bool notices_planted_errors(lua_State* L) {
  const Count real = count;
  bool good = notices(L, "p_k", &Layout::p_k, 8) && notices(L, "p_lineinfo", &Layout::p_lineinfo, 8);
  good = notices(L, "p_code", &Layout::p_code, 8) && notices(L, "p_locvars", &Layout::p_locvars, 8) && good;
  good = notices(L, "p_upvalues", &Layout::p_upvalues, 8) && notices(L, "p_source", &Layout::p_source, 8) && good;
  good = notices(L, "p_sizek", &Layout::p_sizek, 4) && notices(L, "string_data", &Layout::string_data, 8) && good;
  good = notices(L, "p_linedefined", &Layout::p_linedefined, 4) && good;
  good = notices(L, "ci_func", &Layout::ci_func, 8) && notices(L, "ci_savedpc", &Layout::ci_savedpc, 8) && good;
  good = notices(L, "L_ci", &Layout::L_ci, 8) && notices(L, "lclosure_p", &Layout::lclosure_p, 8) &&
         notices(L, "cclosure_f", &Layout::cclosure_f, 8) && good;
  if (layout.ci_previous != no_field)
    good = notices(L, "ci_previous", &Layout::ci_previous, 8) &&
           notices(L, "ci_callstatus", &Layout::ci_callstatus, 2) && good;
  if (layout.p_abslineinfo != no_field) good = notices(L, "p_abslineinfo", &Layout::p_abslineinfo, 8) && good;
  count = real;
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  const Layout* row = this_layout();
  if (row == nullptr) return std::printf("no layout for %s\n", LUA_RELEASE), 1;
  layout = *row;
  compare_opcodes();
  compare_collector_fields(layout);
  heap_fields::compare(layout.heap);
  const bool heaps = heap_oracle::run(layout);
  lua_State* L = new_state();
  value_fields::compare(L, layout);
  bool good = run_script(L, 400) && heaps;
  for (int i = 1; i < argc; ++i) {
    if (luaL_loadfile(L, argv[i]) == 0) {
      lua_getglobal(L, "all");
      lua_insert(L, -2);
      lua_call(L, 1, 0);
    } else {
      lua_pop(L, 1);
    }
  }
  good = notices_planted_errors(L) && good;
  lua_close(L);
  std::printf("%s: %ld frames and %ld instructions compared, %ld differ\n", LUA_RELEASE, count.frames,
              count.instructions, count.differ);
  return good && count.differ == 0 && count.frames > 0 && count.instructions > 0 ? 0 : 1;
}
