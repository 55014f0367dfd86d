// The functions that the workload of bias.py calls: system calls of several kinds, each timed by
// the time stamp counter.
//
// Every PUC Lua and LuaJIT can load this as a module: it uses only functions whose binary interface
// is the same in all versions, so it does not need Lua's headers. LuaJIT also calls it through its
// ffi. The counters are in a file that measure.py reads meanwhile: slot 0 has the cycles per ms,
// slot 1 + i belongs to the i-th thread.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { nothing, cpu_clock, null_write, wake, send_one, recv_one, lua_clock, lua_nothing, kinds };
enum { words = 64, slots = 65, first_calls = 256 };

struct lua_State;
typedef int (*Function)(struct lua_State*);
extern long luaL_checkinteger(struct lua_State*, int) __attribute__((weak));
extern double luaL_checknumber(struct lua_State*, int) __attribute__((weak));
extern const char* luaL_checklstring(struct lua_State*, int, size_t*) __attribute__((weak));
extern void lua_pushcclosure(struct lua_State*, Function, int) __attribute__((weak));
extern void lua_pushnumber(struct lua_State*, double) __attribute__((weak));
extern void lua_createtable(struct lua_State*, int, int) __attribute__((weak));
extern void lua_setfield(struct lua_State*, int, const char*) __attribute__((weak));
extern struct lua_State* luaL_newstate(void) __attribute__((weak));
extern int luaL_loadstring(struct lua_State*, const char*) __attribute__((weak));
extern int lua_pcall(struct lua_State*, int, int, int) __attribute__((weak));                // 5.1, LuaJIT
extern int lua_pcallk(struct lua_State*, int, int, int, long, void*) __attribute__((weak));  // 5.2 and later
extern void luaL_openlibs(struct lua_State*) __attribute__((weak));                          // up to 5.4
extern void luaL_openselectedlibs(struct lua_State*, int, int) __attribute__((weak));        // 5.5

// By kind: calls, and the total cycles (sum) and the number (believed) of those that were not
// interrupted.
struct Slot {
  int64_t thread, calls[kinds], sum[kinds], believed[kinds];
};
_Static_assert(sizeof(struct Slot) <= words * 8, "a slot is too small");

static int64_t (*shared)[words];
static int used;
static int null_file;
static int word;
static __thread struct Slot* slot;
static __thread int pair[2];
static __thread int64_t limit[kinds];
static __thread int64_t first[kinds][first_calls];

#define ONE_CALL __attribute__((noinline, noclone, visibility("default")))
#define KEEP_FRAME __asm__ volatile("" ::: "memory")  // after a call, so that it does not become a jump

ONE_CALL void bias_call_nothing(void) { KEEP_FRAME; }
ONE_CALL void bias_call_clock(void) {
  clock();
  KEEP_FRAME;
}
ONE_CALL void bias_call_write(void) {
  if (write(null_file, "x", 1) != 1) abort();
  KEEP_FRAME;
}
ONE_CALL void bias_call_futex(void) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  KEEP_FRAME;
}
ONE_CALL void bias_call_send(void) {
  if (send(pair[0], "x", 1, 0) != 1) abort();
  KEEP_FRAME;
}
ONE_CALL void bias_call_recv(void) {
  char one;
  if (recv(pair[1], &one, 1, 0) != 1) abort();
  KEEP_FRAME;
}

static void (*const calls[kinds])(void) = {
    bias_call_nothing, bias_call_clock, bias_call_write, bias_call_futex, bias_call_send, bias_call_recv, NULL, NULL};

static int by_size(const void* a, const void* b) {
  int64_t left = *(const int64_t*)a, right = *(const int64_t*)b;
  return left < right ? -1 : left > right;
}

// A call that took 8 times the median of the thread's first ones was preempted or stopped: it
// counts as an average one.
static void count(int kind, int64_t cycles) {
  int64_t number = slot->calls[kind]++;
  if (number < first_calls) {
    first[kind][number] = cycles;
    if (number == first_calls - 1) {
      qsort(first[kind], first_calls, sizeof *first[kind], by_size);
      limit[kind] = 8 * first[kind][first_calls / 2];
    }
  } else if (cycles < limit[kind]) {
    slot->sum[kind] += cycles;
    slot->believed[kind]++;
  }
}

__attribute__((visibility("default"))) void bias_timed(int kind) {
  unsigned on;
  uint64_t before = __rdtscp(&on);
  calls[kind]();
  count(kind, (int64_t)(__rdtscp(&on) - before));
}

static void enter_thread(void) {
  int index = __sync_add_and_fetch(&used, 1);
  if (index >= slots || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) abort();
  slot = (struct Slot*)shared[index];
  slot->thread = syscall(SYS_gettid);
}

__attribute__((visibility("default"))) void bias_open(const char* path) {
  if (shared) return;
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // luaspy is a sibling: under Yama it needs permission to trace
  int file = open(path, O_RDWR);
  null_file = open("/dev/null", O_WRONLY);
  shared = mmap(NULL, slots * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || null_file < 0 || shared == MAP_FAILED) abort();
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  uint64_t from = __rdtsc();
  double ns;
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
    ns = (now.tv_sec - begin.tv_sec) * 1e9 + (now.tv_nsec - begin.tv_nsec);
  } while (ns < 20e6);
  shared[0][0] = (int64_t)((double)(__rdtsc() - from) / ns * 1e6);
  enter_thread();
}

static int timed(struct lua_State* lua) {
  bias_timed((int)luaL_checkinteger(lua, 1));
  return 0;
}

static int cycles(struct lua_State* lua) {
  unsigned on;
  lua_pushnumber(lua, (double)__rdtscp(&on));
  return 1;
}

// For calls that Lua times: the arguments are the kind and the earlier result of cycles().
static int timed_by_lua(struct lua_State* lua) {
  unsigned on;
  count((int)luaL_checkinteger(lua, 1), (int64_t)(__rdtscp(&on) - (uint64_t)luaL_checknumber(lua, 2)));
  return 0;
}

static void* run(void* source) {
  enter_thread();
  struct lua_State* lua = luaL_newstate();
  if (luaL_openselectedlibs) luaL_openselectedlibs(lua, ~0, 0);
  else luaL_openlibs(lua);
  if (luaL_loadstring(lua, source) == 0) {
    if (lua_pcallk) lua_pcallk(lua, 0, 0, 0, 0, NULL);
    else lua_pcall(lua, 0, 0, 0);
  }
  abort();  // not reached: it works forever
}

// Starts a thread with its own state, which runs a text.
static int start(struct lua_State* lua) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, strdup(luaL_checklstring(lua, 1, NULL))) != 0) abort();
  return 0;
}

static int open_file(struct lua_State* lua) {
  bias_open(luaL_checklstring(lua, 1, NULL));
  return 0;
}

__attribute__((visibility("default"))) int luaopen_bias(struct lua_State* lua) {
  static const struct {
    const char* name;
    Function function;
  } all[] = {
      {"open", open_file}, {"timed", timed}, {"cycles", cycles}, {"timed_by_lua", timed_by_lua}, {"start", start}};
  lua_createtable(lua, 0, 5);
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
    lua_pushcclosure(lua, all[i].function, 0);
    lua_setfield(lua, -2, all[i].name);
  }
  return 1;
}
