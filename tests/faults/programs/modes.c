/* The modes of victim.c, and those about processes, threads, memory and waiting. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#include "victim.h"

const struct Mode modes[] = {
    {"busy", NULL, busy_thread, NULL, 0},
    {"threads", NULL, new_threads, NULL, 0},
    {"children", NULL, children, NULL, 0},
    {"exec", count_exec, busy_thread, execs_from_main, 0},
    {"exec_thread", count_exec, thread_that_execs, NULL, 0},
    {"queue", watch_queue, queue_signals, NULL, 0},
    {"timers", start_timer, busy_thread, check_timer, 0},
    {"stops", be_stopped_by_parent, NULL, NULL, 0},
    {"waited", be_waited_for, NULL, NULL, 0},
    {"maps", NULL, maps_and_unmaps, NULL, 1},
    {"memory", NULL, NULL, runs_out_of_memory, 0},
    {"dumpable", NULL, toggles_dumpable, NULL, 0},
    {"user", NULL, toggles_user, NULL, 0},
    {"ends", NULL, busy_thread, ends_soon, 0},
    {"blocked", NULL, blocked_threads, NULL, 0},
    {"short", NULL, short_waits, NULL, 0},
    {"exec_many", count_exec, many_threads_and_exec, NULL, 0},
    {"urgent", watch_urgent, send_urgent, NULL, 0},
    {"breakpoints", set_breakpoints, NULL, count_by_breakpoints, 0},
    {"sleeps", NULL, NULL, sleeps_a_little, 0},
    {NULL, NULL, NULL, NULL, 0},
};

/* Lua on another thread, with a state of its own. */
void busy_thread(void) {
  for (lua_State* L = new_lua();;) work(L, 0);
}

static void* some_work(void* number) {
  volatile uintptr_t sum = 0;
  for (int i = 0; i < 3000; ++i) sum = sum + 1;
  if ((uintptr_t)number % 8 == 0) {
    lua_State* L = new_lua();
    work(L, 0);
    lua_close(L);
  }
  return (void*)(sum + (uintptr_t)number);
}

void new_threads(void) {
  enum { count = 8 };
  for (uintptr_t number = 0;; number += count) {
    pthread_t threads[count];
    for (uintptr_t i = 0; i < count; ++i)
      must(pthread_create(&threads[i], NULL, some_work, (void*)(number + i)) == 0, "pthread_create");
    for (uintptr_t i = 0; i < count; ++i) {
      void* result = NULL;
      if (pthread_join(threads[i], &result) != 0 || result != (void*)(number + i + 3000))
        wrong("a thread gave %p", result);
      add(&board->events);
    }
    pause_us(500);
  }
}

extern char** environ;

static pid_t child_of_kind(int kind) {
  static char* const command[] = {"true", NULL};
  pid_t pid = -1;
  if (kind == 0) {
    pid = fork();
    if (pid == 0) _exit(42);
  } else if (kind == 1) {
    pid = vfork();
    if (pid == 0) {
      execv("/bin/true", command);
      _exit(99);
    }
  } else if (kind == 2) {
    if (posix_spawn(&pid, "/bin/true", NULL, NULL, command, environ) != 0) pid = -1;
  } else if (kind == 3) {
    pid = (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_FILES | CLONE_FS, NULL, NULL, NULL, NULL);
    if (pid == 0) _exit(42);
  } else {
    pid = fork();
    if (pid == 0) {
      raise(SIGKILL);
      _exit(99);
    }
  }
  return pid;
}

void children(void) {
  static const int statuses[] = {42 << 8, 0, 0, 42 << 8, SIGKILL};
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, NULL); /* children inherit it */
  for (int turn = 0;; ++turn) {
    const pid_t pid = child_of_kind(turn % 5);
    int status = 0;
    if (pid <= 0 || waitpid(pid, &status, 0) != pid || status != statuses[turn % 5])
      wrong("child %d of kind %d: status %#x", pid, turn % 5, (unsigned)status);
    add(&board->events);
    pause_us(300);
  }
}

/* exec: the same process again; it must not take longer than usual. */
static void exec_again(const char* mode) {
  char number[24];
  snprintf(number, sizeof number, "%d", (int)getpid());
  board->began_ns = now_ns();
  execl(self, self, board_path, mode, number, (char*)NULL);
  must(0, "exec");
}

void count_exec(void) {
  if (board->began_ns == 0) return;
  const uint64_t took = now_ns() - board->began_ns;
  if (took > board->longest_ns) board->longest_ns = took;
  if (atoi(argument) != getpid()) wrong("exec: the process was %s, is %d", argument, (int)getpid());
  add(&board->events);
}

void execs_from_main(void) {
  static int done;
  if (++done == 20) exec_again("exec");
}

void thread_that_execs(void) {
  pause_us(3000);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  exec_again("exec_thread");
}

/* Lua on three threads that can all be trapped, until another one executes the program again. */
static void unblocked_thread(void) {
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  busy_thread();
}

void many_threads_and_exec(void) {
  start_thread(unblocked_thread), start_thread(unblocked_thread);
  pause_us(150000);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  exec_again("exec_many");
}

void maps_and_unmaps(void) {
  char path[4096];
  snprintf(path, sizeof path, "%.4000s", self);
  char* const end = strrchr(path, '/');
  must(end != NULL, "a path with a folder");
  strcpy(end, "/plugin.so");
  for (;;) {
    void* const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    must(plugin != NULL, "dlopen");
    int (*plugin_work)(int);
    *(void**)&plugin_work = dlsym(plugin, "plugin_work");
    for (int i = 0; i < 50; ++i) {
      if (plugin_work(1000) != 499500) wrong("the plugin gave another sum");
    }
    dlclose(plugin);
    add(&board->events);
  }
}

/* A state whose allocator has a limit. Lua raises an error, collects, and continues (lmem.c: luaM_realloc_; lj_gc.c:
 * lj_mem_realloc). */
static size_t used;

static void* bounded(void* context, void* block, size_t old_size, size_t new_size) {
  enum { most = 1 << 20 };
  (void)context;
  if (block == NULL) old_size = 0;
  if (new_size > old_size && used - old_size + new_size > most) return NULL;
  void* const result = new_size == 0 ? (free(block), NULL) : realloc(block, new_size);
  if (new_size == 0 || result != NULL) used = used - old_size + new_size;
  return result;
}

void runs_out_of_memory(void) {
  static lua_State* L;
  static const char greedy[] = "local t = {} while true do t[#t + 1] = {string.rep('x', 100) .. #t} end";
  if (L == NULL) {
#if LUA_VERSION_NUM >= 505
    L = lua_newstate(bounded, NULL, 1);
#else
    L = lua_newstate(bounded, NULL);
#endif
    must(L != NULL, "lua_newstate");
    luaL_openlibs(L);
  }
  const int failed = luaL_loadbuffer(L, greedy, sizeof greedy - 1, "=greedy") != 0 || lua_pcall(L, 0, 0, 0) != 0;
  const char* const message = failed ? lua_tostring(L, -1) : "nothing";
  if (message == NULL || strstr(message, "not enough memory") == NULL)
    wrong("without memory Lua says: %s", message == NULL ? "no text" : message);
  lua_settop(L, 0);
  lua_gc(L, LUA_GCCOLLECT, 0);
  add(&board->events);
}

void toggles_dumpable(void) {
  for (int turn = 0;; ++turn) {
    must(prctl(PR_SET_DUMPABLE, turn % 2, 0, 0, 0) == 0, "PR_SET_DUMPABLE");
    add(&board->events);
    pause_us(3000);
  }
}

void toggles_user(void) {
  enum { nobody = 65534 };
  for (;;) {
    must(setresuid(nobody, nobody, 0) == 0, "setresuid");
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    pause_us(3000);
    if (getuid() != nobody) wrong("another user than it was");
    must(setresuid(0, 0, 0) == 0, "setresuid");
    pause_us(3000);
    add(&board->events);
  }
}

void ends_soon(void) {
  static int done;
  if (++done == atoi(argument)) exit(37);
}

/* Calls that block forever, and that a stop would end with EINTR: none may end. */
static int sockets[2];
static void wait_in_epoll(void) {
  const int set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event;
  for (;;) {
    add(&board->calls);
    wrong("epoll_wait ended: %d, %s", epoll_wait(set, &event, 1, -1), strerror(errno));
  }
}
static void wait_in_recv(void) {
  char byte;
  for (;;) {
    add(&board->calls);
    wrong("recv ended: %zd, %s", recv(sockets[0], &byte, 1, 0), strerror(errno));
  }
}
static void wait_for_signal(void) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  const struct timespec long_time = {100000, 0};
  for (;;) {
    add(&board->calls);
    wrong("sigtimedwait ended: %d, %s", sigtimedwait(&one, NULL, &long_time), strerror(errno));
  }
}

void blocked_threads(void) {
  const struct timeval long_time = {100000, 0};
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
  must(setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof long_time) == 0, "SO_RCVTIMEO");
  start_thread(wait_in_epoll), start_thread(wait_in_recv), start_thread(wait_for_signal);
  for (;;) pause();
}

/* A thread that blocks most of the time, and runs for a moment in between. */
void short_waits(void) {
  prctl(PR_SET_NAME, "short");
  const int set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event;
  for (;;) {
    if (epoll_wait(set, &event, 1, 1) < 0) {
      if (errno != EINTR) wrong("epoll_wait: %s", strerror(errno));
      add(&board->interrupted);
    }
    add(&board->calls);
    volatile int sum = 0;
    for (int i = 0; i < 20000; ++i) sum = sum + i;
  }
}
