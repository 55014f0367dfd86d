#include "luastate/puc/layouts.h"

#include <array>
#include <initializer_list>

namespace luaspy {
namespace {

// A row says what differs from the row before it, in the order of the fields' places; the first one has
// every field.

// The row of the next releases: `before` with the changes.
constexpr Layout after(const Layout& before, std::string_view name, int first_patch, int last_patch, auto change) {
  Layout row = before;
  row.name = name, row.series = name.substr(0, 3), row.first_patch = first_patch, row.last_patch = last_patch;
  change(row);
  return row;
}

// The structs are the same from 5.1.0 on. A field that is forgotten here does not compile.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"
constexpr Layout lua51 = {
    .name = "5.1.0-5.1.5",
    .series = "5.1",
    .first_patch = 0,
    .last_patch = 5,
    .bytecode = Bytecode::lua51,
    .string_form = StringForm::length_word,
    .L_size = 184,
    .L_tt = 8,
    .L_status = 10,
    .L_top = 16,
    .L_G = 32,
    .L_ci = 40,
    .L_stack_last = 56,
    .L_stack = 64,
    .L_errorJmp = 168,
    .L_base_ci = 80,
    .L_base = 24,
    .L_savedpc = 48,
    .G_mainthread = 176,
    .G_registry = 160,
    .G_gcstate = 33,
    .ci_size = 40,
    .ci_func = 8,
    .ci_savedpc = 24,
    .ci_base = 0,
    .ci_tailcalls = 36,
    .tt_size = 4,
    .tag_lclosure = 6,
    .tag_cclosure = 6,
    .tag_light_c = 0xff,
    .tag_proto = 9,
    .closure_isC = 10,
    .lclosure_p = 32,
    .cclosure_f = 32,
    .cclosure_upvalue = 40,
    .p_size = 120,
    .p_k = 16,
    .p_code = 24,
    .p_lineinfo = 40,
    .p_locvars = 48,
    .p_upvalues = 56,
    .p_source = 64,
    .p_sizeupvalues = 72,
    .p_sizek = 76,
    .p_sizecode = 80,
    .p_sizelineinfo = 84,
    .p_sizelocvars = 92,
    .p_linedefined = 96,
    .p_lastlinedefined = 100,
    .p_numparams = 113,
    .p_is_vararg = 114,
    .upvalue_desc_size = 8,
    .string_len = 16,
    .string_data = 24,
    .table_lsizenode = 11,
    .table_node = 32,
    .node_size = 40,
    .node_value = 0,
    .node_key = 16,
    .node_key_tt = 24,
    .G_allgc = 40,  // rootgc
    .G_currentwhite = 32,
    .G_totalbytes = 120,
    .estimate_from_totalbytes = 8,
    .L_hookmask = 100,
    .table_sizearray = 56,
    .table_array = 24,
    .table_metatable = 16,
    .array_form = ArrayForm::values,
    .closure_nupvalues = 11,
    .closure_upvals = 40,
    .upval_v = 16,
    .udata_metatable = 16,
    .udata_memory = 40,
    .L_gt = 120,
    .heap = {.G_strt_hash = 0,
             .G_strt_size = 12,
             .G_tmudata = 80,
             .G_buffsize = 104,
             .G_mt = 224,
             .G_tmname = 296,
             .global_size = 616,
             .thread_size = 184,
             .L_openupval = 152,
             .table_size = 64,
             .upvalue_size = 40,
             .upvalue_next = 0,
             .fixed_bit = 0x20,
             .udata_len = 32,
             .udata_user_value = 24},
};
#pragma GCC diagnostic pop

// CallInfo became a list. u.l.extra came with the next row; here `extra` is in u.c.
constexpr Layout lua520 = after(lua51, "5.2.0", 0, 0, [](Layout& row) {
  row.bytecode = Bytecode::lua52;
  row.L_G = 24, row.L_ci = 32, row.L_stack_last = 48, row.L_stack = 56, row.L_hookmask = 72, row.heap.L_openupval = 96,
  row.L_errorJmp = 112, row.L_base_ci = 128, row.L_size = 208, row.heap.thread_size = 208, row.L_base = no_field,
  row.L_gt = no_field, row.L_savedpc = no_field;
  row.G_totalbytes = 16, row.G_GCdebt = 24, row.heap.G_strt_hash = 40, row.heap.G_strt_size = 52, row.G_registry = 56,
  row.G_currentwhite = 72, row.G_gcstate = 73, row.G_gckind = 74, row.G_allgc = 80, row.heap.G_finobj = 88,
  row.heap.G_tobefnz = 144, row.heap.G_buffsize = 208, row.G_mainthread = 240, row.heap.G_tmname = 264,
  row.heap.G_mt = 400, row.heap.global_size = 680, row.estimate_from_totalbytes = no_field,
  row.heap.G_tmudata = no_field;
  row.ci_func = 0, row.callstatus_size = 1, row.ci_previous = 16, row.ci_next = 24, row.ci_callstatus = 34,
  row.ci_base = 40, row.ci_savedpc = 48, row.ci_extra = 64, row.ci_size = 80, row.ci_tailcalls = no_field;
  row.status = {.lua = 0x01, .reentry = 0x04, .tail = 0x40, .hooked = 0x02};
  row.tag_light_c = 22, row.tag_lclosure = 70, row.tag_cclosure = 102;
  row.closure_nupvalues = 10, row.upvalue_desc_size = 16, row.cclosure_f = 24, row.lclosure_p = 24,
  row.cclosure_upvalue = 32, row.closure_upvals = 32, row.closure_isC = no_field;
  row.p_source = 72, row.p_sizeupvalues = 80, row.p_sizek = 84, row.p_sizecode = 88, row.p_sizelineinfo = 92,
  row.p_sizelocvars = 100, row.p_linedefined = 104, row.p_lastlinedefined = 108, row.p_numparams = 120,
  row.p_is_vararg = 121, row.p_size = 128;
  row.table_sizearray = 12, row.table_array = 16, row.table_node = 24, row.table_metatable = 40,
  row.heap.table_size = 56;
});

constexpr Layout lua52 = after(lua520, "5.2.1-5.2.4", 1, 4, [](Layout& row) {
  row.estimate_from_totalbytes = 24, row.heap.G_strt_hash = 48, row.heap.G_strt_size = 60, row.G_registry = 64,
  row.G_currentwhite = 84, row.G_gcstate = 85, row.G_gckind = 86, row.G_allgc = 96, row.heap.G_finobj = 104,
  row.heap.G_tobefnz = 168, row.heap.G_buffsize = 232, row.G_mainthread = 264, row.heap.G_tmname = 288,
  row.heap.G_mt = 424, row.heap.global_size = 704;
  row.ci_extra = 40, row.ci_base = 48, row.ci_savedpc = 56;
});

constexpr Layout lua530 = after(lua52, "5.3.0", 0, 0, [](Layout& row) {
  row.bytecode = Bytecode::lua53;
  row.heap.L_openupval = 64, row.L_errorJmp = 88, row.L_base_ci = 96, row.L_hookmask = 200, row.heap.thread_size = 216;
  row.G_allgc = 88, row.heap.G_tobefnz = 152, row.heap.G_fixedgc = 160, row.heap.G_buffsize = 192,
  row.G_mainthread = 224, row.heap.G_tmname = 248, row.heap.G_mt = 440, row.heap.global_size = 728,
  row.G_gckind = no_field;
  row.ci_base = 32, row.ci_savedpc = 40, row.ci_extra = 56, row.ci_callstatus = 66, row.ci_size = 72;
  row.status = {.lua = 0x02, .reentry = 0x08, .tail = 0x20, .hooked = 0x04};
  row.tag_integer = 19;
  row.upval_v = 0, row.heap.upvalue_next = 16, row.heap.upvalue_size = 32;
  row.p_numparams = 10, row.p_is_vararg = 11, row.p_sizeupvalues = 16, row.p_sizek = 20, row.p_sizecode = 24,
  row.p_sizelineinfo = 28, row.p_sizelocvars = 36, row.p_linedefined = 40, row.p_lastlinedefined = 44, row.p_k = 48,
  row.p_code = 56, row.p_lineinfo = 72, row.p_locvars = 80, row.p_upvalues = 88, row.p_source = 104, row.p_size = 120;
  row.heap.fixed_bit = 0, row.string_data = 32;
  row.node_size = 32;
  row.heap.udata_user_tag = 10, row.heap.udata_len = 24, row.heap.udata_user_value = 32;
});

constexpr Layout lua531 = after(lua530, "5.3.1", 1, 1, [](Layout& row) {
  row.string_form = StringForm::short_long;
  row.heap.global_size = 1744;
  row.string_shrlen = 11, row.string_data = 24;
});

// CIST_FRESH, the inverse of CIST_REENTRY; lua_State.nci before status; no buffer in the global_State.
constexpr Layout lua532 = after(lua531, "5.3.2-5.3.3", 2, 3, [](Layout& row) {
  row.L_status = 12;
  row.G_mainthread = 200, row.heap.G_tmname = 224, row.heap.G_mt = 416, row.heap.global_size = 1552,
  row.heap.G_buffsize = no_field;
  row.status = {.lua = 0x02, .fresh = 0x08, .tail = 0x20, .hooked = 0x04};
});

// callstatus became an unsigned short, for CIST_FIN.
constexpr Layout lua53 = after(lua532, "5.3.4-5.3.6", 4, 6, [](Layout& row) {
  row.callstatus_size = 2;
  row.status = {.lua = 0x02, .fresh = 0x08, .tail = 0x20, .hooked = 0x04, .finalizer = 0x100};
});

// lvm.c of 5.4.0 and 5.4.1: OP_CALL calls luaD_call for Lua functions, too; there is no CIST_FRESH.
constexpr Layout lua540 = after(lua53, "5.4.0", 0, 0, [](Layout& row) {
  row.bytecode = Bytecode::lua54;
  row.L_status = 10, row.L_hookmask = 192, row.L_size = 200, row.heap.thread_size = 208;
  row.estimate_from_totalbytes = 16, row.G_currentwhite = 100, row.G_gcstate = 101, row.G_gckind = 102,
  row.G_allgc = 112, row.heap.G_finobj = 128, row.heap.G_tobefnz = 176, row.heap.G_fixedgc = 184,
  row.G_mainthread = 256, row.heap.G_tmname = 272, row.heap.G_mt = 472, row.heap.global_size = 1616;
  row.ci_savedpc = 32, row.ci_nextraargs = 44, row.ci_callstatus = 62, row.ci_size = 64, row.ci_base = no_field,
  row.ci_extra = no_field, row.recurses_per_call = true;
  row.status = {.c = 0x02, .tail = 0x10, .hooked = 0x04, .finalizer = 0x40};
  row.tt_size = 1, row.tag_integer = 3, row.tag_proto = 10, row.tag_float = 19, row.boolean_variants = true;
  row.upval_v = 16, row.heap.upvalue_next = 24, row.heap.upvalue_size = 40;
  row.p_sizeabslineinfo = 40, row.p_linedefined = 44, row.p_lastlinedefined = 48, row.p_k = 56, row.p_code = 64,
  row.p_upvalues = 80, row.p_lineinfo = 88, row.p_abslineinfo = 96, row.p_locvars = 104, row.p_source = 112,
  row.p_size = 128;
  row.node_key_tt = 9, row.node_size = 24, row.array_form = ArrayForm::limited;
  row.udata_nuvalue = 10, row.heap.udata_len = 16, row.udata_metatable = 24, row.udata_memory = 32, row.udata_uv = 40,
  row.heap.udata_user_tag = no_field, row.heap.udata_user_value = no_field;
});

constexpr Layout lua541 = after(lua540, "5.4.1", 1, 1, [](Layout& row) {
  row.L_stack_last = 40, row.L_stack = 48, row.heap.L_openupval = 56, row.L_errorJmp = 80, row.L_base_ci = 88,
  row.L_hookmask = 184, row.L_size = 192, row.heap.thread_size = 200;
  row.G_mainthread = 264, row.heap.G_tmname = 280, row.heap.G_mt = 480;
});

constexpr Layout lua542 = after(lua541, "5.4.2", 2, 2, [](Layout& row) {
  row.recurses_per_call = false;
  row.status = {.c = 0x02, .fresh = 0x04, .tail = 0x20, .hooked = 0x08, .finalizer = 0x80};
});

constexpr Layout lua54 = after(lua542, "5.4.3-5.4.9", 3, 9, [](Layout& row) {
  row.L_errorJmp = 88, row.L_base_ci = 96, row.L_hookmask = 192, row.L_size = 200, row.heap.thread_size = 208;
  row.heap.global_size = 1624;
});

constexpr Layout lua55 = after(lua54, "5.5.0-5.5.1", 0, 1, [](Layout& row) {
  row.bytecode = Bytecode::lua55, row.string_form = StringForm::signed_short;
  row.L_status = 11, row.L_hookmask = 196, row.L_size = 208, row.heap.thread_size = 216;
  row.G_currentwhite = 106, row.G_gcstate = 107, row.G_gckind = 108, row.heap.G_tmname = 272, row.heap.G_mt = 472,
  row.G_mainthread = 1416, row.estimate_from_totalbytes = no_field, row.mainthread_embedded = true;
  row.callstatus_size = 4, row.ci_callstatus = 60;
  row.status = {.c = 0x8000, .fresh = 0x10000, .tail = 0x400000, .hooked = 0x80000, .finalizer = 0x1000000};
  row.has_varargs = 1;
  row.heap.long_string_data = 32;
  row.heap.lastfree_log2 = 3, row.table_metatable = 32, row.heap.table_size = 48, row.array_form = ArrayForm::apart;
  row.udata_uv = 48;
});

// ---- Lua built with long double for its numbers (luaconf.h: LUA_NUMBER; from 5.3 on LUA_FLOAT_TYPE). On
// x86-64 a Value has 16 bytes then, and is aligned to 16, so a TValue has 32. offsetof() over the sources of
// 5.1.5, 5.2.4, 5.3.0, 5.3.1, 5.3.3, 5.3.6, 5.4.2, 5.4.4, 5.4.9 and 5.5.1 with that type; for the releases
// between them, and 5.2.0 and 5.4.0, what the stock row says, moved as in these.

constexpr void move_all(std::initializer_list<Offset*> fields, int by) {
  for (Offset* const field : fields) {
    if (*field != no_field) *field = static_cast<Offset>(*field + by);
  }
}

// What is the same in all releases. The registry is the first TValue of a global_State, and most fields
// are behind it.
constexpr Layout wide(Layout row, std::string_view name, int behind_registry, std::uint16_t global_size) {
  row.name = name;
  row.value_size = 32, row.value_tt = 16;
  const bool has_small_keys = row.tt_size == 1;
  row.node_key = 32, row.node_key_tt = has_small_keys ? 17 : 48, row.node_size = has_small_keys ? 48 : 64;
  row.heap.upvalue_size = 64;
  row.heap.global_size = global_size;
  for (Offset* const field :
       {&row.G_allgc, &row.G_currentwhite, &row.G_gcstate, &row.G_gckind, &row.G_mainthread, &row.heap.G_finobj,
        &row.heap.G_tobefnz, &row.heap.G_fixedgc, &row.heap.G_buffsize, &row.heap.G_mt, &row.heap.G_tmname}) {
    if (*field > row.G_registry) move_all({field}, behind_registry);
  }
  return row;
}

// Two TValues in lua_State, and uvhead in global_State.
constexpr Layout wide51(Layout row, std::string_view name, std::uint16_t global_size) {
  row = wide(row, name, 16, global_size);
  row.L_gt = 128, row.heap.L_openupval = 192, row.L_errorJmp = 208, row.L_size = row.heap.thread_size = 224;
  row.cclosure_upvalue = 48;
  row.heap.G_mt = 272, row.heap.G_tmname = 344;
  return row;
}

// global_State has an UpVal, uvhead. In 5.2.0 the registry is at 56, which is no multiple of 16.
constexpr Layout wide52(Layout row, std::string_view name, std::uint16_t global_size) {
  const bool registry_moves = row.G_registry % 16 != 0;
  row = wide(row, name, registry_moves ? 24 : 16, global_size);
  if (registry_moves) move_all({&row.G_registry}, 8);
  move_all({&row.heap.G_buffsize, &row.G_mainthread, &row.heap.G_tmname, &row.heap.G_mt}, 24);
  return row;
}

// Udata has a Value; from 5.3.2 on the alignment of a string's characters is that of a number, too
// (llimits.h, L_Umaxalign).
constexpr Layout wide53(Layout row, std::string_view name, std::uint16_t global_size, Offset string_data) {
  row = wide(row, name, 16, global_size);
  row.heap.upvalue_size = 48;
  row.udata_memory = 48;
  row.string_data = string_data;
  return row;
}

// global_State has a second TValue, nilvalue.
constexpr Layout wide54(Layout row, std::string_view name, std::uint16_t global_size) {
  row = wide(row, name, 32, global_size);
  row.udata_uv = 48;
  row.heap.upvalue_next = 32;
  return row;
}

constexpr std::array all = {lua51,
                            lua520,
                            lua52,
                            lua530,
                            lua531,
                            lua532,
                            lua53,
                            lua540,
                            lua541,
                            lua542,
                            lua54,
                            lua55,
                            wide51(lua51, "5.1.0-5.1.5 with long double", 704),
                            wide52(lua520, "5.2.0 with long double", 736),
                            wide52(lua52, "5.2.1-5.2.4 with long double", 752),
                            wide53(lua530, "5.3.0 with long double", 752, 32),
                            wide53(lua531, "5.3.1 with long double", 1776, 24),
                            wide53(lua532, "5.3.2-5.3.3 with long double", 1584, 32),
                            wide53(lua53, "5.3.4-5.3.6 with long double", 1584, 32),
                            wide54(lua540, "5.4.0 with long double", 1648),
                            wide54(lua541, "5.4.1 with long double", 1664),
                            wide54(lua542, "5.4.2 with long double", 1664),
                            wide54(lua54, "5.4.3-5.4.9 with long double", 1664),
                            wide54(lua55, "5.5.0-5.5.1 with long double", 1664)};

}  // namespace

std::span<const Layout> layouts() { return all; }

}  // namespace luaspy
