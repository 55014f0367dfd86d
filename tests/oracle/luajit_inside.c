#include "luajit_inside.h"

#include <stddef.h>
#include <string.h>

#include "lj_obj.h"

#include "lj_bc.h"
#include "lj_debug.h"
#include "lj_frame.h"

static const char *const opcode_names[] = {
#define NAME(name, ma, mb, mc, mt) #name,
  BCDEF(NAME)
#undef NAME
};

static GCproto *proto_at(uint64_t proto) { return (GCproto *)(uintptr_t)proto; }

void inside_describe(struct inside_layout *into)
{
  into->gc64 = LJ_GC64;
  into->string_length = (int)offsetof(GCstr, len);
  into->string_data = (int)sizeof(GCstr);
  into->registry = (int)offsetof(global_State, registrytv);
  into->current_thread = (int)offsetof(global_State, cur_L);
  into->prototype_size = (int)sizeof(GCproto);
  into->registers_are_two_up = LJ_FR2;
}

uint64_t inside_globals(lua_State *L) { return (uint64_t)(uintptr_t)G(L); }

static uint64_t slot_of(cTValue *frame) { return (uint64_t)(uintptr_t)(frame - LJ_FR2); }

void inside_read_frame(lua_State *L, const lua_Debug *ar, struct inside_frame *into)
{
  uint32_t size = (uint32_t)ar->i_ci >> 16;
  cTValue *frame = tvref(L->stack) + ((uint32_t)ar->i_ci & 0xffff);
  cTValue *next = size ? frame + size : NULL;
  cTValue *called = frame_isvarg(frame) ? frame_prevd(frame) : frame;
  GCfunc *fn = frame_func(frame);
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
    const BCIns *pc = frame_islua(next) ? frame_pc(next) : frame_contpc(next);
    ptrdiff_t position = pc - proto_bc(funcproto(fn)) - 1;
    if (position >= 0 && position < (ptrdiff_t)into->size_code) into->position = (int)position;
  }
}

uint64_t inside_running(lua_State *L, int *is_tail_call)
{
  cTValue *frame = L->base - 1;
  *is_tail_call = 0;
  if (isluafunc(frame_func(frame))) {
    BCOp op = bc_op(cframe_pc(cframe_raw(L->cframe))[-1]);
    *is_tail_call = op == BC_CALLT || op == BC_CALLMT;
  }
  return slot_of(frame_isvarg(frame) ? frame_prevd(frame) : frame);
}

uint64_t inside_prototype(lua_State *L, int index)
{
  cTValue *value = index < 0 ? L->top + index : L->base + index - 1;
  return (uint64_t)(uintptr_t)funcproto(funcV(value));
}

static GCobj *constant(uint64_t proto, uint32_t i) { return proto_kgc(proto_at(proto), ~(ptrdiff_t)i); }

uint32_t inside_constants(uint64_t proto) { return proto_at(proto)->sizekgc; }

uint64_t inside_child(uint64_t proto, uint32_t i)
{
  GCobj *object = constant(proto, i);
  return object->gch.gct == ~LJ_TPROTO ? (uint64_t)(uintptr_t)object : 0;
}

const char *inside_constant(uint64_t proto, uint32_t i)
{
  GCobj *object = constant(proto, i);
  return object->gch.gct == ~LJ_TSTR ? strdata(&object->str) : NULL;
}

int inside_parameters(uint64_t proto) { return proto_at(proto)->numparams; }
int inside_registers(uint64_t proto) { return proto_at(proto)->framesize; }
int inside_line(uint64_t proto, int pc) { return (int)lj_debug_line(proto_at(proto), (BCPos)pc); }
int inside_opcode(uint64_t proto, int pc) { return (int)bc_op(proto_bc(proto_at(proto))[pc]); }

const char *inside_register(uint64_t proto, int pc, int reg, const char **name)
{
  return lj_debug_slotname(proto_at(proto), proto_bc(proto_at(proto)) + pc, (BCReg)reg, name);
}

const char *inside_callee(lua_State *L, uint64_t proto, int pc, const char **name)
{
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
const char *inside_opcode_name(int opcode) { return opcode_names[opcode]; }

int inside_sets(int opcode)
{
  if (bcmode_a(opcode) == BCMdst) return INSIDE_A;
  return bcmode_a(opcode) == BCMbase ? INSIDE_FROM_A : INSIDE_NOTHING;
}

const char *inside_event(lua_State *L, int opcode)
{
  MMS event = bcmode_mm(opcode);
  if (event == MM__MAX) return NULL;
  return strdata(mmname_str(G(L), event)) + 2;
}
