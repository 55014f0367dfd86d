// Compares names, lines and sources of LuaJIT's functions as luaspy reads them with lua_getinfo and
// lj_debug.c of the LuaJIT that this is linked with (luajit_inside.c; run-luajit.sh).
//
// The scripts run three times: interpreted; compiled, so that bytecode is patched; and interpreted
// with a hook that sees every call and so knows which functions were tail called. `check` compares
// every frame of the real stack, `all` every register at every instruction.

extern "C" {
#include "lauxlib.h"
#include "lua.h"
#include "luajit.h"
#include "lualib.h"
}

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/text.h"
#include "compare.h"
#include "luajit_heap_oracle.h"
#include "luajit_inside.h"
#include "luajit_script.h"
#include "luastate/bytecode.h"
#include "luastate/luajit/layouts.h"
#include "luastate/luajit/luajit_functions.h"
#include "luastate/luajit/luajit_lua.h"
#include "luastate/luajit/luajit_opcodes.h"
#include "luastate/luajit/luajit_tables.h"
#include "luastate/names.h"
#include "script.h"

using namespace luaspy;

namespace {

LuajitLayout layout;
inside_layout inside;

// What the hook saw: the function that was called first in a slot, and whether another one has
// replaced it.
struct Entered {
  Address first = 0;
  bool tail = false;
};
std::map<std::pair<lua_State*, Address>, Entered> entered;
std::pair<lua_State*, Address> tail_calling;
bool hooked = false;

struct Tally {
  long named = 0, lost = 0, tails = 0, tails_named = 0, untrue = 0, patched = 0, no_position = 0;
};
Tally tally;

struct Level {
  LuaCall call;
  inside_frame frame;
  lua_Debug ar;
};

std::string cut(const char* text) { return std::string(std::string_view(text != nullptr ? text : "").substr(0, 200)); }

LuaCall call_of(const inside_frame& frame, Address G) {
  LuaCall call;
  call.func = frame.slot;
  call.closure = frame.function;
  call.fresh = frame.from_c != 0;
  if (frame.proto != 0) call.kind = LuaCall::Kind::lua;
  if (!call.is_lua()) {
    call.entry = frame.entry;
    call.key = c_function_key(layout, G, frame.pc, frame.entry);
    return call;
  }
  call.proto = frame.proto;
  call.code = frame.pc;
  call.size_code = frame.size_code;
  std::array<std::byte, 128> bytes;
  if (OwnMemory().read(call.proto, std::span(bytes).first(layout.pt_size)))
    call.mark = mark_of(layout, std::span(bytes).first(layout.pt_size));
  call.saved_pc = call.code + 4 * (static_cast<Address>(std::max(frame.position, 0)) + 1);
  return call;
}

std::vector<Level> levels_of(lua_State* L) {
  std::vector<Level> levels;
  lua_Debug ar;
  for (int level = 0; lua_getstack(L, level, &ar) != 0; ++level) {
    Level& added = levels.emplace_back();
    inside_read_frame(L, &ar, &added.frame);
    lua_getinfo(L, "Sl", &ar);
    added.ar = ar;
    added.call = call_of(added.frame, inside_globals(L));
  }
  // If older releases do not know the caller's position either, after a stitched trace, they read
  // an instruction beyond its end.
  for (std::size_t i = 0; i < levels.size(); ++i) {
    levels[i].ar.name = nullptr, levels[i].ar.namewhat = "";
    if (i + 1 < levels.size() && levels[i + 1].frame.position >= 0) lua_getinfo(L, "n", &levels[i].ar);
  }
  return levels;
}

// LuaJIT returns "" if bytecode has no upvalue names.
std::string name_or_question_mark(const char* what, const char* name) {
  const std::string text = cut(name);
  return text.empty() && what != nullptr && std::string_view(what) == "upvalue" ? "?" : text;
}

void compare_name(const char* what, const char* name, const std::optional<CallName>& got, int line, int pc) {
  if (got && got->what == "for iterator") return;  // lj_debug.c names it like any value
  expect_at("namewhat", std::string_view(what != nullptr ? what : ""), got ? got->what : "", line, pc);
  expect_at("name", what != nullptr ? name_or_question_mark(what, name) : "", got ? got->name : "", line, pc);
}

void compare_function(const Level& level, const std::optional<Prototype>& function) {
  const lua_Debug& ar = level.ar;
  const int pc = level.frame.position;
  if (!function) return expect_at("prototype", "readable", "unreadable", ar.linedefined, pc);
  if (ar.linedefined == -1) return expect_at("source", "=" + std::string(ar.short_src), function->source, -1, pc);
  expect_at("source", cut(ar.source), function->source, ar.linedefined, pc);
  expect_at("linedefined", ar.linedefined, function->line_defined, ar.linedefined, pc);
  expect_at("lastlinedefined", ar.lastlinedefined, function->last_line_defined, ar.linedefined, pc);
  expect_at("what", ar.what, function->is_main() ? "main" : "Lua", ar.linedefined, pc);
  if (pc < 0) return ++tally.no_position, void();
  expect_at("currentline", ar.currentline > 0 ? ar.currentline : ar.linedefined, function->line(pc), ar.linedefined,
            pc);
}

// Whether `name` leads to `function` from package.loaded or from _G: a module, a field of a module or a
// global, or a field of a table in one of these.
bool leads_to(lua_State* L, const std::string& name, Address function) {
  const int top = lua_gettop(L);
  const auto field = [&](const std::string& key) {
    if (lua_istable(L, -1)) lua_pushlstring(L, key.data(), key.size()), lua_rawget(L, -2);
    else lua_pushnil(L);
  };
  const auto is_it = [&] { return reinterpret_cast<Address>(lua_topointer(L, -1)) == function; };
  const std::size_t last = name.find_last_of(".:");
  const std::string table = name.substr(0, last != std::string::npos ? last : 0), key = name.substr(last + 1);
  const std::size_t dot = table.rfind('.');
  bool found = false;
  for (const std::vector<std::string>& way : {std::vector<std::string>{table.empty() ? "_G" : table, key},
                                              {"_G", table, key},
                                              {table.substr(0, dot), table.substr(dot + 1), key}}) {
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    for (std::size_t i = 0; i < way.size(); ++i) {
      // A metamethod belongs to the table that has the metatable.
      if (i + 1 == way.size() && way[i].starts_with("__") && lua_getmetatable(L, -1) != 0) {
        field(way[i]);
        found |= is_it();
        lua_pop(L, 2);
      }
      field(way[i]);
    }
    found |= is_it();
    lua_settop(L, top);
  }
  return found;
}

// Names that say how a function was called, which is true also of one that a tail call put there.
bool is_general(std::string_view name) { return name == iterator_name || name.starts_with("__"); }

// luajit_script.h: values that change while they are called, names that LuaJIT guesses, and fields
// whose values only an __index function knows. script.h: a field of a table that no longer exists
// while the function runs. Nothing confirms these names, so luaspy has none. No other function has
// one of them.
bool is_exempt(std::string_view name) {
  return name == "replaced" || name == "renamed" || name == "guessed" || name == "computed_field" ||
         name == "computed_last" || name == "in_no_table";
}

// Compares the name that Names gives to a frame. LuaJIT's name is right unless the function was
// tail called; then the name must belong to the function that runs.
void compare_frame(lua_State* L, Names& names, const Level& level, const Level* caller) {
  const Address G = inside_globals(L);
  const LuajitLua lua(layout);
  const OwnMemory memory;
  const LuaCall* const outside = caller != nullptr ? &caller->call : nullptr;
  const Frame frame = names.label({lua, G, memory}, level.call, outside, level.call.saved_pc).frame();
  const int line = level.ar.linedefined;
  if (level.call.is_lua() && std::string_view(level.ar.what) == "main")
    return expect_at("frame", "main chunk", frame.name, line, 0);
  std::string got = frame.name == "function" ? "" : frame.name;
  const bool is_called = caller != nullptr && caller->call.is_lua() && !level.call.fresh && caller->frame.position >= 0;
  std::string said = level.ar.name != nullptr ? printable(cut(level.ar.name)) : "";
  if (said == "?") said.clear();
  if (said == "(for generator)") said = iterator_name;
  // Its name in package.loaded is right, whatever an instruction calls it.
  if (!got.empty() && leads_to(L, got, level.call.closure)) return;
  if (!is_called)
    return caller != nullptr && caller->call.is_lua() && !level.call.fresh ? void()
                                                                           : expect_at("frame", "", got, line, 0);
  const Entered* known = nullptr;
  if (hooked) {
    const auto found = entered.find({L, level.frame.base_slot});
    if (found != entered.end()) known = &found->second;
  }
  if (known == nullptr || !known->tail) {
    tally.named += known != nullptr;
    if (got.empty() && !said.empty()) tally.lost += known != nullptr && !is_exempt(said);
    else expect_at("frame", said, got, line, caller->frame.position);
    return;
  }
  ++tally.tails;
  if (got.empty() || is_general(got)) return;
  ++tally.tails_named;
  // Two closures of one function have the same name.
  const LuaCall first = {.closure = known->first};
  const auto function_of = [&](Address closure) {
    return read_function(memory, layout, G, closure).value_or(LuajitFunction{}).key;
  };
  if (function_of(first.closure) != function_of(level.call.closure)) {
    if (is_exempt(got)) return;
    ++tally.untrue;
    if (!planted && tally.untrue < 10)
      std::printf("untrue: '%s' (function at line %d, called at line %d)\n", got.c_str(), line, caller->ar.currentline);
  }
}

Names* names_now = nullptr;

// check([co])
int check(lua_State* L) {
  lua_State* co = lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
  const std::vector<Level> levels = levels_of(co);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const Level& level = levels[i];
    const Level* caller = i + 1 < levels.size() ? &levels[i + 1] : nullptr;
    ++count.frames;
    if (level.call.is_lua()) compare_function(level, LuajitLua(layout).prototype(OwnMemory(), level.call.proto));
    const bool is_called = caller != nullptr && caller->call.is_lua() && caller->frame.position >= 0;
    if (is_called) {
      const auto prototype = LuajitLua(layout).prototype(OwnMemory(), caller->call.proto);
      std::optional<CallName> name;
      if (prototype) name = callee_name(*prototype, caller->frame.position);
      compare_name(*level.ar.namewhat != 0 ? level.ar.namewhat : nullptr, level.ar.name, name, caller->ar.linedefined,
                   caller->frame.position);
    }
    compare_frame(co, *names_now, level, caller);
  }
  return 0;
}

int loaded(lua_State* L) {
  const Address G = inside_globals(L), function = reinterpret_cast<Address>(lua_topointer(L, 2));
  const auto read = read_function(OwnMemory(), layout, G, function);
  lua_Debug ar;
  lua_pushvalue(L, 2);
  lua_getinfo(L, ">S", &ar);
  if (*ar.what != 'C' && ar.linedefined != -1) return 0;
  struct inside_frame frame {};
  LuaCall call;
  if (*ar.what != 'C') call.kind = LuaCall::Kind::lua;
  call.key = read ? read->key : 0;
  if (call.is_lua()) {
    frame.function = function, frame.proto = inside_prototype(L, 2),
    frame.pc = frame.proto + static_cast<Address>(inside.prototype_size);
    call = call_of(frame, G);
  }
  const LuajitLua lua(layout);
  const OwnMemory memory;
  const std::string name = *names_now->label({lua, G, memory}, call, nullptr, call.code).name;
  ++count.frames;
  if (!leads_to(L, name, function)) expect_at("loaded", lua_tostring(L, 1), name, 0, 0);
  return 0;
}

void compare_constants(Address proto, const Prototype& copy) {
  expect_at("constants", static_cast<int>(inside_constants(proto)), static_cast<int>(copy.constants.size()),
            copy.line_defined, 0);
  for (std::uint32_t i = 0; i < std::min<std::size_t>(copy.constants.size(), inside_constants(proto)); ++i) {
    const char* const text = inside_constant(proto, i);
    expect_at("constant", text != nullptr ? cut(text) : "none", copy.constants[i].value_or("none"), copy.line_defined,
              static_cast<int>(i));
  }
}

bool is_patched(int opcode) {
  const std::string_view name = inside_opcode_name(opcode);
  return name.starts_with("J") && name != "JMP";
}

void compare_instructions(lua_State* L, Address proto) {
  std::optional<Prototype> copy = LuajitLua(layout).prototype(OwnMemory(), proto);
  if (!copy) return expect_at("prototype", "readable", "unreadable", 0, 0);
  compare_constants(proto, *copy);
  expect_at("parameters", inside_parameters(proto), copy->parameters, copy->line_defined, 0);
  const int size = static_cast<int>(copy->code.size());
  const int step = size > 8192 ? size / 512 : 1;
  const auto opcodes = encoding_of(bytecode_of(layout)).opcodes;
  // A call of register 0.
  const auto call = static_cast<std::uint32_t>(std::ranges::find(opcodes, "CALL", &Opcode::name) - opcodes.begin());
  for (int pc = 0; pc < size; pc += pc < size - 200 ? step : 1) {
    ++count.instructions;
    const int line = inside_line(proto, pc);
    expect_at("line", copy->lines.empty() ? copy->line_defined : line, copy->line(pc), copy->line_defined, pc);
    tally.patched += is_patched(inside_opcode(proto, pc));
    if (pc == 0) continue;
    const char* name = nullptr;
    const char* what = inside_callee(L, proto, pc, &name);
    compare_name(what, name, callee_name(*copy, pc), copy->line_defined, pc);
    callee_path(*copy, pc);
    const std::uint32_t real = copy->code[static_cast<std::size_t>(pc)];
    const int registers = size > 400 && pc % 16 != 0 ? 0 : inside_registers(proto);
    for (int reg = 0; reg < registers; ++reg) {
      copy->code[static_cast<std::size_t>(pc)] = call | static_cast<std::uint32_t>(reg) << 8;
      what = inside_register(proto, pc, reg, &name);
      compare_name(what, name, callee_name(*copy, pc), copy->line_defined, pc);
    }
    copy->code[static_cast<std::size_t>(pc)] = real;
  }
  for (std::uint32_t i = 0; i < inside_constants(proto); ++i) {
    if (const Address child = inside_child(proto, i)) compare_instructions(L, child);
  }
}

// all(f)
int all(lua_State* L) {
  lua_gc(L, LUA_GCSTOP, 0);
  compare_instructions(L, inside_prototype(L, 1));
  lua_gc(L, LUA_GCRESTART, 0);
  return 0;
}

void hook(lua_State* L, lua_Debug* ar) {
  int is_tail_call = 0;
  const std::pair place(L, inside_running(L, &is_tail_call));
  if (ar->event == LUA_HOOKCOUNT) {
    tail_calling = is_tail_call != 0 ? place : std::pair<lua_State*, Address>();
    return;
  }
  lua_getinfo(L, "f", ar);
  const Address function = reinterpret_cast<Address>(lua_topointer(L, -1));
  lua_pop(L, 1);
  if (place == tail_calling) entered[place].tail = true;
  else entered[place] = {function, false};
  tail_calling = {};
}

bool run(lua_State* L, int load_status, const char* what) {
  if (load_status == 0 && lua_pcall(L, 0, 0, 0) == 0) return true;
  std::printf("%s: %s\n", what, lua_tostring(L, -1));
  return false;
}

lua_State* new_state() {
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "check", check);
  lua_register(L, "all", all);
  lua_register(L, "loaded", loaded);
  run(L, luaL_loadstring(L, "local dump = string.dump function strip(f) return dump(f, true) end"), "strip");
  lua_pushinteger(L, LUA_VERSION_NUM);
  lua_setglobal(L, "VERSION");
  lua_pushliteral(L, LUA_RELEASE);
  lua_setglobal(L, "RELEASE");
  return L;
}

enum class Mode { interpreted, compiled, watched };

bool run_scripts(Mode mode, int programs) {
  lua_State* L = new_state();
  const OwnMemory memory;
  Names names(memory);
  names_now = &names;
  if (mode == Mode::compiled) {
    run(L, luaL_loadstring(L, "jit.on() jit.opt.start('hotloop=2', 'hotexit=2', 'maxtrace=8000', 'maxmcode=16384')"),
        "jit");
  } else {
    luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  }
  hooked = mode == Mode::watched;
  if (hooked) {
    run(L, luaL_loadstring(L, "debug.sethook = function() end"), "hook");  // there is only one hook
    entered.clear();
    lua_sethook(L, hook, LUA_MASKCALL | LUA_MASKCOUNT, 1);
  }
  lua_pushinteger(L, programs);
  lua_setglobal(L, "PROGRAMS");
  bool good = run(L, luaL_loadbuffer(L, luajit_script, std::char_traits<char>::length(luajit_script), "@luajit.lua"),
                  "luajit_script");
  good = run(L, luaL_loadbuffer(L, names_script, std::char_traits<char>::length(names_script), "@script.lua"),
             "script") &&
         good;
  lua_sethook(L, nullptr, 0, 0);
  lua_close(L);
  return good;
}

// Compares the opcode table with lj_bc.h. Function headers come last, with other numbers in older
// releases.
void compare_opcodes() {
  lua_State* L = luaL_newstate();
  int headers = 0;
  while (std::string_view(inside_opcode_name(headers)) != "FUNCF") ++headers;
  constexpr int bit_operators = 7;
  const std::span<const Opcode> opcodes = encoding_of(bytecode_of(layout)).opcodes;
  const int size = static_cast<int>(opcodes.size());
  if (headers != size) expect_at("opcodes", headers, layout.is_20 ? size : size - bit_operators, 0, 0);
  for (int op = 0; op < headers; ++op) {
    const Opcode& opcode = opcodes[static_cast<std::size_t>(op)];
    expect_at("opcode", inside_opcode_name(op), opcode.name, 0, op);
    const char* const event = inside_event(L, op);
    const bool is_call = event != nullptr && std::string_view(event) == "call";
    expect_at("event", event != nullptr && !is_call ? event : "", opcode.event, 0, op);
    expect_at("calls", is_call, opcode.calls != Calls::nobody && opcode.calls != Calls::event, 0, op);
    const int sets = opcode.sets == Sets::nothing ? INSIDE_NOTHING : opcode.sets == Sets::a ? INSIDE_A : INSIDE_FROM_A;
    expect_at("sets", inside_sets(op), sets, 0, op);
  }
  lua_close(L);
}

// A layout with one wrong offset must be detected.
bool notices(const char* field, Offset LuajitLayout::*offset, int by) {
  const LuajitLayout right = layout;
  layout.*offset = static_cast<Offset>(layout.*offset + by);
  const long before = count.differ, lost = tally.lost;
  planted = true;
  run_scripts(Mode::interpreted, 2);
  planted = false;
  layout = right;
  const long noticed = std::exchange(count.differ, before) - before + std::exchange(tally.lost, lost) - lost;
  if (noticed == 0) std::printf("a wrong %s goes unnoticed\n", field);
  return noticed > 0;
}

bool notices_planted_errors() {
  const Count real = count;
  const Tally real_tally = tally;
  const int word = layout.ref_size;
  bool good = true;
  const auto also = [&](const char* field, Offset LuajitLayout::*offset, int by) {
    good = notices(field, offset, by) && good;
  };
  also("pt_k", &LuajitLayout::pt_k, word);
  also("pt_sizekgc", &LuajitLayout::pt_sizekgc, 4);
  also("pt_sizebc", &LuajitLayout::pt_sizebc, 4);
  also("pt_sizept", &LuajitLayout::pt_sizept, 4);
  also("pt_sizeuv", &LuajitLayout::pt_sizeuv, 1);
  also("pt_size", &LuajitLayout::pt_size, 4);
  also("pt_chunkname", &LuajitLayout::pt_chunkname, word);
  also("pt_firstline", &LuajitLayout::pt_firstline, 4);
  also("pt_numline", &LuajitLayout::pt_numline, 4);
  also("pt_lineinfo", &LuajitLayout::pt_lineinfo, word);
  also("pt_uvinfo", &LuajitLayout::pt_uvinfo, word);
  also("pt_varinfo", &LuajitLayout::pt_varinfo, -word);
  also("pt_numparams", &LuajitLayout::pt_numparams, 1);
  also("str_data", &LuajitLayout::str_data, 4);
  also("str_len", &LuajitLayout::str_len, -4);
  also("G_registry", &LuajitLayout::G_registry, 8);
  also("tab_node", &LuajitLayout::tab_node, word);
  also("tab_hmask", &LuajitLayout::tab_hmask, -4);
  also("fn_pc", &LuajitLayout::fn_pc, word);
  also("fn_ffid", &LuajitLayout::fn_ffid, 1);
  also("node_val", &LuajitLayout::node_val, 8);
  also("node_key", &LuajitLayout::node_key, -8);
  count = real;
  tally = real_tally;
  return good;
}

// Compares the rows, and what find_globals and find_traces find in a live state, with the
// compiler's view of the structures.
void compare_layout() {
  static constexpr struct {
    std::string_view name;
    Offset LuajitLayout::*offset;
  } members[] = {
      {"L_gct", &LuajitLayout::L_gct},
      {"L_status", &LuajitLayout::L_status},
      {"L_glref", &LuajitLayout::L_glref},
      {"L_base", &LuajitLayout::L_base},
      {"L_top", &LuajitLayout::L_top},
      {"L_maxstack", &LuajitLayout::L_maxstack},
      {"L_stack", &LuajitLayout::L_stack},
      {"L_openupval", &LuajitLayout::L_openupval},
      {"L_env", &LuajitLayout::L_env},
      {"L_cframe", &LuajitLayout::L_cframe},
      {"L_stacksize", &LuajitLayout::L_stacksize},
      {"cframe_L", &LuajitLayout::cframe_L},
      {"cframe_PC", &LuajitLayout::cframe_PC},
      {"cframe_previous", &LuajitLayout::cframe_previous},
      {"cframe_nres", &LuajitLayout::cframe_nres},
      {"pt_size", &LuajitLayout::pt_size},
      {"pt_gct", &LuajitLayout::pt_gct},
      {"pt_sizebc", &LuajitLayout::pt_sizebc},
      {"pt_flags", &LuajitLayout::pt_flags},
      {"pt_trace", &LuajitLayout::pt_trace},
      {"fn_ffid", &LuajitLayout::fn_ffid},
      {"fn_pc", &LuajitLayout::fn_pc},
      {"fn_f", &LuajitLayout::fn_f},
      {"T_size", &LuajitLayout::T_size},
      {"T_nins", &LuajitLayout::T_nins},
      {"T_nk", &LuajitLayout::T_nk},
      {"T_ir", &LuajitLayout::T_ir},
      {"T_snap", &LuajitLayout::T_snap},
      {"T_snapmap", &LuajitLayout::T_snapmap},
      {"T_startpt", &LuajitLayout::T_startpt},
      {"T_startpc", &LuajitLayout::T_startpc},
      {"T_startins", &LuajitLayout::T_startins},
      {"T_szmcode", &LuajitLayout::T_szmcode},
      {"T_mcode", &LuajitLayout::T_mcode},
      {"T_spadjust", &LuajitLayout::T_spadjust},
      {"T_traceno", &LuajitLayout::T_traceno},
      {"T_link", &LuajitLayout::T_link},
      {"T_root", &LuajitLayout::T_root},
      {"T_nextroot", &LuajitLayout::T_nextroot},
      {"T_nextside", &LuajitLayout::T_nextside},
      {"str_len", &LuajitLayout::str_len},
      {"str_data", &LuajitLayout::str_data},
      {"main_L_below", &LuajitLayout::main_L_below},
      {"G_vmstate", &LuajitLayout::G_vmstate},
      {"G_mainthref", &LuajitLayout::G_mainthref},
      {"G_registry", &LuajitLayout::G_registry},
      {"G_cur_L", &LuajitLayout::G_cur_L},
      {"G_jit_base", &LuajitLayout::G_jit_base},
      {"G_gc", &LuajitLayout::G_gc},
      {"G_hookmask", &LuajitLayout::G_hookmask},
      {"G_gcroot", &LuajitLayout::G_gcroot},
      {"G_trace", &LuajitLayout::G_trace},
      {"G_sizetrace", &LuajitLayout::G_sizetrace},
      {"T_nsnap", &LuajitLayout::T_nsnap},
      {"fn_nupvalues", &LuajitLayout::fn_nupvalues},
      {"fn_uvptr", &LuajitLayout::fn_uvptr},
      {"uv_size", &LuajitLayout::uv_size},
      {"uv_v", &LuajitLayout::uv_v},
      {"tab_size", &LuajitLayout::tab_size},
      {"tab_colo", &LuajitLayout::tab_colo},
      {"tab_asize", &LuajitLayout::tab_asize},
      {"tab_array", &LuajitLayout::tab_array},
      {"tab_metatable", &LuajitLayout::tab_metatable},
      {"udata_udtype", &LuajitLayout::udata_udtype},
      {"udata_env", &LuajitLayout::udata_env},
      {"udata_len", &LuajitLayout::udata_len},
      {"udata_size", &LuajitLayout::udata_size},
      {"cdata_ctypeid", &LuajitLayout::cdata_ctypeid},
      {"cdata_size", &LuajitLayout::cdata_size},
  };
  lua_State* const L = luaL_newstate();
  luaL_openlibs(L);
  const OwnMemory memory;
  LuajitLayout found = inside.gc64 != 0 ? layout_rows::luajit_gc64 : layout_rows::luajit_gc32;
  const Address G = inside_globals(L);
  expect_at("globals are found", 1, find_globals(memory, reinterpret_cast<Address>(L), G, found), 0, 0);
  // No trace yet; then two, one of them with a function inlined.
  expect_at("traces are found where there are none", 0, find_traces(memory, G, found), 0, 0);
  if (luaL_dostring(L,
                    "local function f(x) return x % 7 end  local s = 0  for i = 1, 300 do s = s + f(i) end  for i = 1, "
                    "300 do s = s - i end") != 0)
    ++count.differ;
  expect_at("traces are found", 1, find_traces(memory, G, found), 0, 0);
  expect_at("size of a snapshot", inside_snapshot_size(), found.snapshots.size, 0, 0);
  const inside_field* field = inside_fields();
  for (const auto& [name, offset] : members) {
    expect_at("field", std::string_view(field->name), name, 0, 0);
    expect_at(field->name, field->offset, found.*offset, 0, 0);
    ++field;
  }
  // The other row is rejected, and so is a state that is unknown to its global state.
  LuajitLayout other = inside.gc64 != 0 ? layout_rows::luajit_gc32 : layout_rows::luajit_gc64;
  expect_at("the other row fits", 0, find_globals(memory, reinterpret_cast<Address>(L), G, other), 0, 0);
  LuajitLayout shifted = found;
  expect_at("a state that is none", 0, find_globals(memory, reinterpret_cast<Address>(L) + 8, G, shifted), 0, 0);
  // find_states() reads memory in large chunks. When it looks again, there may be a coroutine whose
  // stack lies where a global_State would be.
  LuajitLayout without_traces = inside.gc64 != 0 ? layout_rows::luajit_gc64 : layout_rows::luajit_gc32;
  (void)find_globals(memory, reinterpret_cast<Address>(L), G, without_traces);
  const LuajitLua lua(without_traces);
  const Address main = reinterpret_cast<Address>(L), coroutine = reinterpret_cast<Address>(lua_newthread(L));
  expect_at("the main thread is recognised", 1, lua.recognise_main(memory, main, G) != nullptr, 0, 0);
  expect_at("the state is open", 1, lua.is_open(memory, main, G), 0, 0);
  const Address no_G = coroutine + found.main_L_below;
  expect_at("a coroutine is a main thread", 0, lua.recognise_main(memory, coroutine, no_G) != nullptr, 0, 0);
  expect_at("what lies above a coroutine is an open state", 0, lua.is_open(memory, coroutine, no_G), 0, 0);
  lua_close(L);
}

}  // namespace

int main(int argc, char**) {
  inside_describe(&inside);
  layout = inside.gc64 != 0 ? layout_rows::luajit_gc64 : layout_rows::luajit_gc32;
  layout.str_len = static_cast<Offset>(inside.string_length);
  layout.str_data = static_cast<Offset>(inside.string_data);
  layout.G_registry = static_cast<Offset>(inside.registry);
  layout.G_cur_L = static_cast<Offset>(inside.current_thread);
  layout.is_20 = inside.is_20 != 0;
  compare_layout();
  const bool good_heaps = compare_heaps();
  if (argc > 1) {
    std::printf("%s: where its structures are compared, %ld differ\n", LUAJIT_VERSION, count.differ);
    return good_heaps && count.differ == 0 ? 0 : 1;
  }
  compare_opcodes();
  const Encoding& encoding = encoding_of(bytecode_of(layout));
  expect_at("object of a method", 1 + inside.registers_are_two_up, encoding.object_above, 0, 0);
  bool good = run_scripts(Mode::interpreted, 60) && good_heaps;
  good = run_scripts(Mode::compiled, 60) && good;
  good = run_scripts(Mode::watched, 4) && good;
  const Tally all_told = tally;
  good = notices_planted_errors() && good;
  std::printf(
      "%s: %ld frames and %ld instructions (%ld patched) compared, %ld differ; of %ld calls %ld lost their name; of "
      "%ld tail calls %ld have one, %ld "
      "untrue; %ld frames without a position\n",
      LUAJIT_VERSION, count.frames, count.instructions, all_told.patched, count.differ, all_told.named, all_told.lost,
      all_told.tails, all_told.tails_named, all_told.untrue, all_told.no_position);
  return good && count.differ == 0 && all_told.lost == 0 && all_told.untrue == 0 && all_told.patched > 0 &&
                 all_told.tails > 0
             ? 0
             : 1;
}
