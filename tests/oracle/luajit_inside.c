#include "luajit_inside.h"

#include <stddef.h>
#include <string.h>

#include "lj_obj.h"

#include "lj_bc.h"
#include "lj_debug.h"
#include "lj_dispatch.h"
#include "lj_frame.h"
#include "lj_jit.h"
#include "luajit.h"

#if LUAJIT_VERSION_NUM < 20100 /* has no 64-bit references, and jit_L in place of cur_L */
#define LJ_GC64 0
#define LJ_FR2 0
#define cur_L jit_L
#endif

static const char* const opcode_names[] = {
#define NAME(name, ma, mb, mc, mt) #name,
    BCDEF(NAME)
#undef NAME
};

static GCproto* proto_at(uint64_t proto) { return (GCproto*)(uintptr_t)proto; }

void inside_describe(struct inside_layout* into) {
  into->gc64 = LJ_GC64;
  into->is_20 = LUAJIT_VERSION_NUM < 20100;
  into->string_length = (int)offsetof(GCstr, len);
  into->string_data = (int)sizeof(GCstr);
  into->registry = (int)offsetof(global_State, registrytv);
  into->current_thread = (int)offsetof(global_State, cur_L);
  into->prototype_size = (int)sizeof(GCproto);
  into->registers_are_two_up = LJ_FR2;
}

const struct inside_field* inside_fields(void) {
  static const struct inside_field fields[] = {
      {"L_gct", (int)(offsetof(GChead, gct))},
      {"L_status", (int)(offsetof(lua_State, status))},
      {"L_glref", (int)(offsetof(lua_State, glref))},
      {"L_base", (int)(offsetof(lua_State, base))},
      {"L_top", (int)(offsetof(lua_State, top))},
      {"L_maxstack", (int)(offsetof(lua_State, maxstack))},
      {"L_stack", (int)(offsetof(lua_State, stack))},
      {"L_openupval", (int)(offsetof(lua_State, openupval))},
      {"L_env", (int)(offsetof(lua_State, env))},
      {"L_cframe", (int)(offsetof(lua_State, cframe))},
      {"L_stacksize", (int)(offsetof(lua_State, stacksize))},
      {"cframe_L", (int)(CFRAME_OFS_L)},
      {"cframe_PC", (int)(CFRAME_OFS_PC)},
      {"cframe_previous", (int)(CFRAME_OFS_PREV)},
      {"cframe_nres", (int)(CFRAME_OFS_NRES)},
      {"pt_size", (int)(sizeof(GCproto))},
      {"pt_gct", (int)(offsetof(GCproto, gct))},
      {"pt_sizebc", (int)(offsetof(GCproto, sizebc))},
      {"pt_flags", (int)(offsetof(GCproto, flags))},
      {"pt_trace", (int)(offsetof(GCproto, trace))},
      {"fn_ffid", (int)(offsetof(GCfuncC, ffid))},
      {"fn_pc", (int)(offsetof(GCfuncC, pc))},
      {"fn_f", (int)(offsetof(GCfuncC, f))},
      {"T_size", (int)(sizeof(GCtrace))},
      {"T_nins", (int)(offsetof(GCtrace, nins))},
      {"T_nk", (int)(offsetof(GCtrace, nk))},
      {"T_ir", (int)(offsetof(GCtrace, ir))},
      {"T_snap", (int)(offsetof(GCtrace, snap))},
      {"T_snapmap", (int)(offsetof(GCtrace, snapmap))},
      {"T_startpt", (int)(offsetof(GCtrace, startpt))},
      {"T_startpc", (int)(offsetof(GCtrace, startpc))},
      {"T_startins", (int)(offsetof(GCtrace, startins))},
      {"T_szmcode", (int)(offsetof(GCtrace, szmcode))},
      {"T_mcode", (int)(offsetof(GCtrace, mcode))},
      {"T_spadjust", (int)(offsetof(GCtrace, spadjust))},
      {"T_traceno", (int)(offsetof(GCtrace, traceno))},
      {"T_link", (int)(offsetof(GCtrace, link))},
      {"T_root", (int)(offsetof(GCtrace, root))},
      {"T_nextroot", (int)(offsetof(GCtrace, nextroot))},
      {"T_nextside", (int)(offsetof(GCtrace, nextside))},
      {"str_len", (int)(offsetof(GCstr, len))},
      {"str_data", (int)(sizeof(GCstr))},
      {"main_L_below", (int)(offsetof(GG_State, g))},
      {"G_vmstate", (int)(offsetof(global_State, vmstate))},
      {"G_mainthref", (int)(offsetof(global_State, mainthref))},
      {"G_registry", (int)(offsetof(global_State, registrytv))},
      {"G_cur_L", (int)(offsetof(global_State, cur_L))},
      {"G_jit_base", (int)(offsetof(global_State, jit_base))},
      {"G_gc", (int)(offsetof(global_State, gc))},
      {"G_hookmask", (int)(offsetof(global_State, hookmask))},
      {"G_gcroot", (int)(offsetof(global_State, gcroot))},
      {"G_trace", (int)(offsetof(GG_State, J) - offsetof(GG_State, g) + offsetof(jit_State, trace))},
      {"G_sizetrace", (int)(offsetof(GG_State, J) - offsetof(GG_State, g) + offsetof(jit_State, sizetrace))},
      {"T_nsnap", (int)(offsetof(GCtrace, nsnap))},
      {"fn_nupvalues", (int)(offsetof(GCfuncL, nupvalues))},
      {"fn_uvptr", (int)(offsetof(GCfuncL, uvptr))},
      {"uv_size", (int)(sizeof(GCupval))},
      {"uv_v", (int)(offsetof(GCupval, v))},
      {"tab_size", (int)(sizeof(GCtab))},
      {"tab_colo", (int)(offsetof(GCtab, colo))},
      {"tab_asize", (int)(offsetof(GCtab, asize))},
      {"tab_array", (int)(offsetof(GCtab, array))},
      {"tab_metatable", (int)(offsetof(GCudata, metatable))},
      {"udata_udtype", (int)(offsetof(GCudata, udtype))},
      {"udata_env", (int)(offsetof(GCudata, env))},
      {"udata_len", (int)(offsetof(GCudata, len))},
      {"udata_size", (int)(sizeof(GCudata))},
      {"cdata_ctypeid", (int)(offsetof(GCcdata, ctypeid))},
      {"cdata_size", (int)(sizeof(GCcdata))},
      {NULL, 0},
  };
  return fields;
}

int inside_snapshot_size(void) { return (int)sizeof(SnapShot); }

uint64_t inside_globals(lua_State* L) { return (uint64_t)(uintptr_t)G(L); }

static uint64_t slot_of(cTValue* frame) { return (uint64_t)(uintptr_t)(frame - LJ_FR2); }

void inside_read_frame(lua_State* L, const lua_Debug* ar, struct inside_frame* into) {
  uint32_t size = (uint32_t)ar->i_ci >> 16;
  cTValue* frame = tvref(L->stack) + ((uint32_t)ar->i_ci & 0xffff);
  cTValue* next = size ? frame + size : NULL;
  cTValue* called = frame_isvarg(frame) ? frame_prevd(frame) : frame;
  GCfunc* fn = frame_func(frame);
  memset(into, 0, sizeof(*into));
  into->slot = slot_of(frame);
  into->base_slot = slot_of(called);
  into->function = (uint64_t)(uintptr_t)fn;
  into->from_c = frame_isc(called);
  into->position = -1;
  into->pc = (uint64_t)(uintptr_t)mref(fn->c.pc, char);
  if (!isluafunc(fn)) {
    into->entry = (uint64_t)(uintptr_t)fn->c.f;
    return;
  }
  into->proto = (uint64_t)(uintptr_t)funcproto(fn);
  into->size_code = funcproto(fn)->sizebc;
  if (next != NULL && (frame_islua(next) || frame_iscont(next))) {
    const BCIns* pc = frame_islua(next) ? frame_pc(next) : frame_contpc(next);
    ptrdiff_t position = pc - proto_bc(funcproto(fn)) - 1;
    if (position >= 0 && position < (ptrdiff_t)into->size_code) into->position = (int)position;
  }
}

uint64_t inside_running(lua_State* L, int* is_tail_call) {
  cTValue* frame = L->base - 1;
  *is_tail_call = 0;
  if (isluafunc(frame_func(frame))) {
    BCOp op = bc_op(cframe_pc(cframe_raw(L->cframe))[-1]);
    *is_tail_call = op == BC_CALLT || op == BC_CALLMT;
  }
  return slot_of(frame_isvarg(frame) ? frame_prevd(frame) : frame);
}

uint64_t inside_prototype(lua_State* L, int index) {
  cTValue* value = index < 0 ? L->top + index : L->base + index - 1;
  return (uint64_t)(uintptr_t)funcproto(funcV(value));
}

static GCobj* constant(uint64_t proto, uint32_t i) { return proto_kgc(proto_at(proto), ~(ptrdiff_t)i); }

uint32_t inside_constants(uint64_t proto) { return proto_at(proto)->sizekgc; }

uint64_t inside_child(uint64_t proto, uint32_t i) {
  GCobj* object = constant(proto, i);
  return object->gch.gct == ~LJ_TPROTO ? (uint64_t)(uintptr_t)object : 0;
}

const char* inside_constant(uint64_t proto, uint32_t i) {
  GCobj* object = constant(proto, i);
  return object->gch.gct == ~LJ_TSTR ? strdata(&object->str) : NULL;
}

int inside_parameters(uint64_t proto) { return proto_at(proto)->numparams; }
int inside_registers(uint64_t proto) { return proto_at(proto)->framesize; }
int inside_line(uint64_t proto, int pc) { return (int)lj_debug_line(proto_at(proto), (BCPos)pc); }
int inside_opcode(uint64_t proto, int pc) { return (int)bc_op(proto_bc(proto_at(proto))[pc]); }

const char* inside_register(uint64_t proto, int pc, int reg, const char** name) {
  return lj_debug_slotname(proto_at(proto), proto_bc(proto_at(proto)) + pc, (BCReg)reg, name);
}

const char* inside_callee(lua_State* L, uint64_t proto, int pc, const char** name) {
  BCIns ins = proto_bc(proto_at(proto))[pc];
  MMS event = bcmode_mm(bc_op(ins));
  if (event == MM__MAX) return NULL;
  if (event != MM_call) {
    *name = strdata(mmname_str(G(L), event));
    return "metamethod";
  }
  return inside_register(proto, pc, (int)bc_a(ins) - (bc_op(ins) == BC_ITERC ? 3 : 0), name);
}

int inside_opcodes(void) { return BC__MAX; }
const char* inside_opcode_name(int opcode) { return opcode_names[opcode]; }

int inside_sets(int opcode) {
  if (bcmode_a(opcode) == BCMdst) return INSIDE_A;
  return bcmode_a(opcode) == BCMbase ? INSIDE_FROM_A : INSIDE_NOTHING;
}

const char* inside_event(lua_State* L, int opcode) {
  MMS event = bcmode_mm(opcode);
  if (event == MM__MAX) return NULL;
  return strdata(mmname_str(G(L), event)) + 2;
}
