#pragma once
/* The heap as LuaJIT's own headers describe it (luajit_heap_inside.c): every object with its size, and what the
 * collector would mark from it. */

#include <stdint.h>

#include "lua.h"

#ifdef __cplusplus
extern "C" {
#endif

struct inside_object {
  uint64_t address, size;
  int gct, is_lua_function, is_dead;
};
void inside_objects(lua_State* L, void (*visit)(void* data, const struct inside_object* object), void* data);

typedef void (*inside_visit)(void* data, uint64_t to);
void inside_references(lua_State* L, uint64_t object, inside_visit visit, void* data);
void inside_roots(lua_State* L, inside_visit visit, void* data);

uint64_t inside_total(lua_State* L);       /* gc.total */
uint64_t inside_other_bytes(lua_State* L); /* of gc.total: what is no object */
uint64_t inside_waiting(lua_State* L);     /* objects that wait for their finalizer */
int inside_phase(lua_State* L);
int inside_recording(lua_State* L);
int inside_gc64(void);

#ifdef __cplusplus
}
#endif
