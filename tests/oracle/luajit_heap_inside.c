#include "luajit_heap_inside.h"

#include <string.h>

#include "lj_obj.h"

#include "lj_cdata.h"
#include "lj_ctype.h"
#include "lj_dispatch.h"
#include "lj_frame.h"
#include "lj_func.h"
#include "lj_gc.h"
#include "lj_ir.h"
#include "lj_jit.h"
#include "lj_str.h"
#include "lj_tab.h"
#include "lj_udata.h"
#include "luajit.h"

#if LUAJIT_VERSION_NUM < 20100
#define LJ_GC64 0
#define LJ_FR2 0
#define sbufsz(buffer) ((buffer)->sz)
#define has_payload(ir) 0 /* 64-bit constants are in arrays */
#define is_running(L, th) ((void)(L), (th)->cframe != NULL)
#else
#include "lj_buf.h"
#define has_payload(ir) (irt_is64((ir)->t) && (ir)->o != IR_KNULL)
#define is_running(L, th) (gcref(G(L)->cur_L) == obj2gco(th))
#endif

#ifdef sizestring /* before 2020-06 */
#define string_bytes(s) sizestring(s)
#define string_chains(g) ((g)->strhash)
#define string_mask(g) ((g)->strmask)
#else
#define string_bytes(s) lj_str_size((s)->len)
#define string_chains(g) ((g)->str.tab)
#define string_mask(g) ((g)->str.mask)
#endif

static uint64_t address_of(const void* pointer) { return (uint64_t)(uintptr_t)pointer; }

/* ---- Sizes: what its free function gives back */

static uint64_t table_bytes(GCtab* t) {
  uint64_t bytes = t->colo ? sizetabcolo((uint32_t)t->colo & 0x7f) : sizeof(GCtab);
  if (t->hmask > 0) bytes += (t->hmask + 1) * sizeof(Node);
  if (t->asize > 0 && t->colo <= 0) bytes += t->asize * sizeof(TValue);
  return bytes;
}

static uint64_t userdata_bytes(GCudata* ud) {
  uint64_t bytes = sizeudata(ud);
#if LJ_HASBUFFER
  if (ud->udtype == UDTYPE_BUFFER) {
    SBufExt* buffer = (SBufExt*)uddata(ud);
    if (!sbufiscoworborrow(buffer)) bytes += sbufsz(buffer);
  }
#endif
  return bytes;
}

static uint64_t cdata_bytes(global_State* g, GCcdata* cd) {
  if (cdataisv(cd)) return sizecdatav(cd);
  CType* type = ctype_raw(ctype_ctsG(g), cd->ctypeid);
  return sizeof(GCcdata) + (ctype_hassize(type->info) ? type->size : CTSIZE_PTR);
}

static uint64_t trace_bytes(GCtrace* T) {
  return ((sizeof(GCtrace) + 7) & ~(size_t)7) + (T->nins - T->nk) * sizeof(IRIns) + T->nsnap * sizeof(SnapShot) +
         T->nsnapmap * sizeof(SnapEntry);
}

static uint64_t bytes_of(global_State* g, GCobj* o) {
  switch (o->gch.gct) {
    case ~LJ_TSTR:
      return string_bytes(&o->str);
    case ~LJ_TUPVAL:
      return sizeof(GCupval);
    case ~LJ_TTHREAD:
      return (&o->th != mainthread(g) ? sizeof(lua_State) : 0) + o->th.stacksize * sizeof(TValue);
    case ~LJ_TPROTO:
      return o->pt.sizept;
    case ~LJ_TFUNC:
      return isluafunc(&o->fn) ? sizeLfunc((MSize)o->fn.l.nupvalues) : sizeCfunc((MSize)o->fn.c.nupvalues);
    case ~LJ_TTRACE:
      return trace_bytes(gco2trace(o));
    case ~LJ_TCDATA:
      return cdata_bytes(g, gco2cd(o));
    case ~LJ_TTAB:
      return table_bytes(&o->tab);
    case ~LJ_TUDATA:
      return userdata_bytes(gco2ud(o));
    default:
      return 0;
  }
}

/* ---- Objects */

struct object_visit {
  global_State* g;
  void (*visit)(void* data, const struct inside_object* object);
  void* data;
};

static void visit_object(const struct object_visit* v, GCobj* o) {
  struct inside_object object = {address_of(o), bytes_of(v->g, o), o->gch.gct, 0, 0};
  object.is_lua_function = o->gch.gct == ~LJ_TFUNC && isluafunc(&o->fn);
  object.is_dead = isdead(v->g, o) && !(o->gch.marked & LJ_GC_FIXED);
  v->visit(v->data, &object);
}

void inside_objects(lua_State* L, void (*visit)(void* data, const struct inside_object* object), void* data) {
  const struct object_visit v = {G(L), visit, data};
  GCobj *o, *up, *last = gcref(G(L)->gc.mmudata);
  MSize i;
  for (o = gcref(G(L)->gc.root); o != NULL; o = gcnext(o)) {
    visit_object(&v, o);
    if (o->gch.gct != ~LJ_TTHREAD) continue;
    for (up = gcref(o->th.openupval); up != NULL; up = gcnext(up)) visit_object(&v, up);
  }
  if ((o = last) != NULL) {
    do visit_object(&v, o = gcnext(o));
    while (o != last);
  }
  for (i = 0; i <= string_mask(G(L)); ++i) {
    for (o = (GCobj*)(gcrefu(string_chains(G(L))[i]) & ~(uintptr_t)1); o != NULL; o = gcnext(o)) visit_object(&v, o);
  }
}

/* ---- References: what gc_mark and propagatemark would mark */

struct reference_visit {
  lua_State* L;
  inside_visit visit;
  void* data;
};

static void refer(const struct reference_visit* v, const void* to) {
  if (to != NULL) v->visit(v->data, address_of(to));
}

static void refer_value(const struct reference_visit* v, cTValue* value) {
  if (tvisgcv(value)) refer(v, gcV(value));
}

static void refer_trace(const struct reference_visit* v, TraceNo number) {
  if (number != 0) refer(v, traceref(L2J(v->L), number));
}

/* Strings are never removed from weak tables. */
static void refer_entry(const struct reference_visit* v, cTValue* value, int is_weak) {
  if (!is_weak || tvisstr(value)) refer_value(v, value);
}

static void refer_table(const struct reference_visit* v, GCtab* t) {
  GCtab* metatable = tabref(t->metatable);
  cTValue* mode = NULL;
  int weak_keys = 0, weak_values = 0;
  MSize i;
  if (metatable != NULL) {
    refer(v, metatable);
    mode = lj_tab_getstr(metatable, mmname_str(G(v->L), MM_mode));
  }
  if (mode != NULL && tvisstr(mode)) {
    weak_keys = strchr(strVdata(mode), 'k') != NULL;
    weak_values = strchr(strVdata(mode), 'v') != NULL;
  }
  for (i = 0; i < t->asize; ++i) refer_entry(v, arrayslot(t, i), weak_values);
  for (i = 0; t->hmask > 0 && i <= t->hmask; ++i) {
    Node* node = &noderef(t->node)[i];
    if (tvisnil(&node->val)) continue;
    refer_entry(v, &node->key, weak_keys);
    refer_entry(v, &node->val, weak_values);
  }
}

static void refer_function(const struct reference_visit* v, GCfunc* fn) {
  uint32_t i;
  refer(v, tabref(fn->c.env));
  if (isluafunc(fn)) {
    refer(v, funcproto(fn));
    for (i = 0; i < fn->l.nupvalues; ++i) refer(v, gcref(fn->l.uvptr[i]));
  } else {
    for (i = 0; i < fn->c.nupvalues; ++i) refer_value(v, &fn->c.upvalue[i]);
  }
}

static void refer_trace_parts(const struct reference_visit* v, GCtrace* T) {
  IRRef ref;
  if (T->traceno == 0) return;
  for (ref = T->nk; ref < REF_TRUE; ++ref) {
    IRIns* ir = &T->ir[ref];
    if (ir->o == IR_KGC) refer(v, ir_kgc(ir));
    if (has_payload(ir)) ++ref;
  }
  refer_trace(v, T->link);
  refer_trace(v, T->nextroot);
  refer_trace(v, T->nextside);
  refer(v, gcref(T->startpt));
}

static void refer_prototype(const struct reference_visit* v, GCproto* pt) {
  ptrdiff_t i;
  refer(v, proto_chunkname(pt));
  for (i = -(ptrdiff_t)pt->sizekgc; i < 0; ++i) refer(v, proto_kgc(pt, i));
  refer_trace(v, pt->trace);
}

/* The coroutine that runs may use all of its frames. */
static void refer_thread(const struct reference_visit* v, lua_State* th) {
  TValue *frame, *slot, *top = th->top;
  for (frame = th->base - 1; frame > tvref(th->stack) + LJ_FR2; frame = frame_prev(frame)) {
    GCfunc* fn = frame_func(frame);
    if (!LJ_FR2 && obj2gco(fn) != obj2gco(th)) refer(v, fn);
    if (is_running(v->L, th) && fn->c.gct == ~LJ_TFUNC && isluafunc(fn) && frame + funcproto(fn)->framesize + 1 > top)
      top = frame + funcproto(fn)->framesize + 1;
  }
  for (slot = tvref(th->stack) + 1 + LJ_FR2; slot < top; ++slot) refer_value(v, slot);
  refer(v, tabref(th->env));
}

static void refer_userdata(const struct reference_visit* v, GCudata* ud) {
  refer(v, tabref(ud->metatable));
  refer(v, tabref(ud->env));
#if LJ_HASBUFFER
  if (ud->udtype == UDTYPE_BUFFER) {
    SBufExt* buffer = (SBufExt*)uddata(ud);
    if (sbufiscow(buffer)) refer(v, gcref(buffer->cowref));
    refer(v, gcref(buffer->dict_str));
    refer(v, gcref(buffer->dict_mt));
  }
#endif
}

void inside_references(lua_State* L, uint64_t object, inside_visit visit, void* data) {
  const struct reference_visit v = {L, visit, data};
  GCobj* o = (GCobj*)(uintptr_t)object;
  switch (o->gch.gct) {
    case ~LJ_TTAB:
      refer_table(&v, &o->tab);
      break;
    case ~LJ_TFUNC:
      refer_function(&v, &o->fn);
      break;
    case ~LJ_TTRACE:
      refer_trace_parts(&v, gco2trace(o));
      break;
    case ~LJ_TPROTO:
      refer_prototype(&v, &o->pt);
      break;
    case ~LJ_TTHREAD:
      refer_thread(&v, &o->th);
      break;
    case ~LJ_TUDATA:
      refer_userdata(&v, gco2ud(o));
      break;
    case ~LJ_TUPVAL:
      refer_value(&v, uvval(&o->uv));
      break;
    default:
      break;
  }
}

void inside_roots(lua_State* L, inside_visit visit, void* data) {
  const struct reference_visit v = {L, visit, data};
  global_State* g = G(L);
  GCobj *o, *last = gcref(g->gc.mmudata);
  MSize i;
  refer(&v, mainthread(g));
  refer(&v, L);
  for (o = gcref(g->gc.root); LUAJIT_VERSION_NUM < 20100 && o != NULL; o = gcnext(o)) {
    if (o->gch.gct == ~LJ_TTHREAD && is_running(L, &o->th)) refer(&v, o);
  }
  refer_value(&v, &g->registrytv);
#ifdef vmthread
  refer(&v, vmthread(g));
#endif
  for (i = 0; i < GCROOT_MAX; ++i) refer(&v, gcref(g->gcroot[i]));
  if ((o = last) != NULL) {
    do refer(&v, o = gcnext(o));
    while (o != last);
  }
  for (i = 0; i <= string_mask(g); ++i) {
    for (o = (GCobj*)(gcrefu(string_chains(g)[i]) & ~(uintptr_t)1); o != NULL; o = gcnext(o)) {
      if (o->gch.marked & LJ_GC_FIXED) refer(&v, o);
    }
  }
  refer_trace_parts(&v, &L2J(L)->cur);
}

/* ---- What is no object */

uint64_t inside_total(lua_State* L) { return G(L)->gc.total; }

uint64_t inside_other_bytes(lua_State* L) {
  global_State* g = G(L);
  jit_State* J = L2J(L);
  CTState* cts = ctype_ctsG(g);
  uint64_t bytes = sizeof(GG_State) + (string_mask(g) + 1) * sizeof(GCRef) + sbufsz(&g->tmpbuf);
  bytes += J->sizesnapmap * sizeof(SnapEntry) + J->sizesnap * sizeof(SnapShot) +
           (J->irtoplim - J->irbotlim) * sizeof(IRIns) + J->sizetrace * sizeof(GCRef);
  if (cts != NULL) bytes += sizeof(CTState) + cts->sizetab * sizeof(CType) + cts->cb.sizeid * sizeof(CTypeID1);
#if LUAJIT_VERSION_NUM < 20100
  {
    const MRef* array; /* lj_ir.c, K64Array */
    for (array = mref(J->k64, MRef); array != NULL; array = mref(*array, MRef))
      bytes += sizeof(MRef) + sizeof(MSize) + LJ_MIN_K64SZ * sizeof(TValue);
  }
#endif
#ifdef LJ_LIGHTUD_BITS_SEG
  if (mref(g->gc.lightudseg, uint32_t) != NULL)
    bytes += (g->gc.lightudnum ? 2u << lj_fls(g->gc.lightudnum) : 2u) * sizeof(uint32_t);
#endif
  return bytes;
}

uint64_t inside_waiting(lua_State* L) {
  GCobj *o, *last = gcref(G(L)->gc.mmudata);
  uint64_t count = 0;
  for (o = last; o != NULL; o = gcnext(o) != last ? gcnext(o) : NULL) ++count;
  return count;
}

int inside_phase(lua_State* L) { return G(L)->gc.state; }
int inside_recording(lua_State* L) { return L2J(L)->cur.traceno != 0; }
int inside_gc64(void) { return LJ_GC64; }
