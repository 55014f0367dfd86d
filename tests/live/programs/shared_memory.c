/* A Lua whose memory is shared: shared_memory WHERE SCRIPT ARGUMENT. WHERE: "memfd", "anonymous", or a file that is
   made; with a "+" before it, only blocks of 100 bytes or more are there, and the others are malloc's. Before that, a
   mapping of 1 TiB is made of which only the last page is written. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

enum { classes = 48, shortest = 16 };
static char *next, *end;
static void* freed[classes]; /* blocks of 16, 32, 64, … bytes */
static size_t least;

static int class_of(size_t size) {
  int n = 0;
  while (((size_t)shortest << n) < size) ++n;
  return n;
}

static void* take(size_t size) {
  const int n = class_of(size);
  void* block = freed[n];
  if (block != NULL) return freed[n] = *(void**)block, block;
  if ((size_t)(end - next) < ((size_t)shortest << n)) return NULL;
  block = next;
  next += (size_t)shortest << n;
  return block;
}

static void give(void* block, size_t size) {
  *(void**)block = freed[class_of(size)];
  freed[class_of(size)] = block;
}

static void* allocate(void* unused, void* block, size_t old_size, size_t size) {
  void* made = NULL;
  (void)unused;
  if (size != 0) {
    made = size < least ? malloc(size) : take(size);
    if (made == NULL) return NULL;
    if (block != NULL) memcpy(made, block, old_size < size ? old_size : size);
  }
  if (block == NULL) return made;
  if (old_size < least) free(block);
  else give(block, old_size);
  return made;
}

int main(int count, char** words) {
  const size_t size = (size_t)64 << 20, huge = (size_t)1 << 40;
  const char* where = count == 4 ? words[1] : "";
  lua_State* L;
  int file = -1, flags = MAP_SHARED;
  char* reserved = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return 2;
  reserved[huge - 1] = 1;
  if (*where == '+') least = 100, ++where;
  if (!strcmp(where, "memfd")) file = memfd_create("luas", 0);
  else if (!strcmp(where, "anonymous")) flags |= MAP_ANONYMOUS;
  else file = open(where, O_RDWR | O_CREAT, 0600);
  if (file >= 0 && ftruncate(file, (off_t)size)) return 2;
  next = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, file, 0);
  if (next == MAP_FAILED) return 2;
  end = next + size;
  L = lua_newstate(allocate, NULL);
  if (L == NULL) return 2;
  luaL_openlibs(L);
  if (luaL_loadfile(L, words[2])) return 1;
  lua_pushstring(L, words[3]);
  return lua_pcall(L, 1, 0, 0);
}
