#pragma once
/* What LuaJIT itself knows about its frames and functions, from its own headers (luajit_inside.c). In C, because these
 * headers are not C++. */

#include <stdint.h>

#include "lua.h"

#ifdef __cplusplus
extern "C" {
#endif

struct inside_layout {
  int gc64;
  int is_20;                      /* LuaJIT 2.0 */
  int string_length, string_data; /* GCstr */
  int registry, current_thread;   /* global_State */
  int prototype_size;
  int registers_are_two_up; /* LJ_FR2 */
};
void inside_describe(struct inside_layout* into);
uint64_t inside_globals(lua_State* L);

/* The offsets of its fields, in the order in which luajit_oracle.cpp lists them, ended by a NULL name. */
struct inside_field {
  const char* name;
  int offset;
};
const struct inside_field* inside_fields(void);
int inside_snapshot_size(void);

struct inside_frame {
  uint64_t slot;      /* the slot that holds the function */
  uint64_t base_slot; /* the same, except for a function with varargs: where it was called */
  uint64_t function;  /* GCfunc */
  uint64_t entry, pc; /* C: its function; its bytecode */
  uint64_t proto;     /* Lua: GCproto */
  uint32_t size_code;
  int from_c;   /* called through a C frame */
  int position; /* Lua: its current instruction; -1 if a C frame is on top of it, or it is in a trace */
};
void inside_read_frame(lua_State* L, const lua_Debug* ar, struct inside_frame* into);

/* The slot of the frame for which a hook was called. is_tail_call: whether its next instruction is a tail call. */
uint64_t inside_running(lua_State* L, int* is_tail_call);

uint64_t inside_prototype(lua_State* L, int index); /* of the Lua function at `index` */
uint64_t inside_child(uint64_t proto, uint32_t i);  /* the function's i-th constant, if it is a prototype */
uint32_t inside_constants(uint64_t proto);
const char* inside_constant(uint64_t proto, uint32_t i); /* if it is a string */
int inside_parameters(uint64_t proto);
int inside_registers(uint64_t proto);
int inside_line(uint64_t proto, int pc);
int inside_opcode(uint64_t proto, int pc);
/* The name of the function that instruction `pc` calls; returns NULL or lua_Debug.namewhat. */
const char* inside_callee(lua_State* L, uint64_t proto, int pc, const char** name);
const char* inside_register(uint64_t proto, int pc, int reg, const char** name);

/* lj_bc.h */
int inside_opcodes(void);
const char* inside_opcode_name(int opcode);
enum inside_sets { INSIDE_NOTHING, INSIDE_A, INSIDE_FROM_A };
int inside_sets(int opcode);
const char* inside_event(lua_State* L, int opcode); /* NULL, or "call" for calls */

#ifdef __cplusplus
}
#endif
