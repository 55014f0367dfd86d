/* sleeper: three threads sleep in system calls that a ptrace stop would end with EINTR, and count how often that
   happens: epoll_wait, recv with a timeout, sigtimedwait. Says READY, and prints the counts once its standard input
   ends. With LUA defined, epoll_wait is called by a C function that Lua called. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef LUA
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#endif

enum { seconds = 600 };
static int interrupted_epoll, interrupted_recv, interrupted_sigtimedwait;
static int sockets[2], ready[2];
static sigset_t one_signal;

static void must(int holds, const char* what) {
  if (holds) return;
  perror(what);
  exit(1);
}

static void say_ready(void) { must(write(ready[1], "r", 1) == 1, "write"); }

static void* receive(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, "in recv");
  say_ready();
  for (;;) {
    char byte;
    if (recv(sockets[0], &byte, 1, 0) >= 0) return NULL;
    must(errno == EINTR, "recv");
    ++interrupted_recv;
  }
}

static void* wait_for_signal(void* unused) {
  const struct timespec timeout = {seconds, 0};
  (void)unused;
  prctl(PR_SET_NAME, "in sigtimedwait");
  say_ready();
  while (sigtimedwait(&one_signal, NULL, &timeout) < 0) {
    must(errno == EINTR, "sigtimedwait");
    ++interrupted_sigtimedwait;
  }
  return NULL;
}

/* Until standard input ends. */
static void wait_for_input(void) {
  struct epoll_event event = {.events = EPOLLIN};
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  must(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event) == 0, "epoll_ctl");
  say_ready();
  while (epoll_wait(epoll, &event, 1, seconds * 1000) < 0) {
    must(errno == EINTR, "epoll_wait");
    ++interrupted_epoll;
  }
}

#ifdef LUA
static int wait_from_lua(lua_State* L) {
  (void)L;
  wait_for_input();
  return 0;
}
#endif

static void* sleep_in_epoll(void* unused) {
  (void)unused;
#ifdef LUA
  lua_State* L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushcfunction(L, wait_from_lua);
  lua_setglobal(L, "wait");
  if (luaL_dostring(
          L, "local function serve() wait() return 1 end\nfunction main_loop() return serve() + 1 end\nmain_loop()")) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(1);
  }
  lua_close(L);
#else
  wait_for_input();
#endif
  return NULL;
}

/* READY is only said once all three sleep where they should. System call numbers: x86-64. */
static int asleep(void) {
  int count = 0;
  DIR* const tasks = opendir("/proc/self/task");
  struct dirent* task;
  must(tasks != NULL, "opendir");
  while ((task = readdir(tasks)) != NULL) {
    char path[300], line[256] = "";
    FILE* file;
    snprintf(path, sizeof path, "/proc/self/task/%s/syscall", task->d_name);
    if (task->d_name[0] == '.' || (file = fopen(path, "r")) == NULL) continue;
    if (fgets(line, sizeof line, file) == NULL) line[0] = 0;
    fclose(file);
    count += strncmp(line, "232 ", 4) == 0 || strncmp(line, "45 ", 3) == 0 || strncmp(line, "128 ", 4) == 0;
  }
  closedir(tasks);
  return count == 3;
}

int main(void) {
  const struct timeval timeout = {seconds, 0};
  pthread_t threads[3];
  char byte;
  int i;
  sigemptyset(&one_signal);
  sigaddset(&one_signal, SIGUSR1);
  must(sigprocmask(SIG_BLOCK, &one_signal, NULL) == 0, "sigprocmask");
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0 && pipe(ready) == 0, "socketpair");
  must(setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0, "setsockopt");
  must(pthread_create(&threads[0], NULL, receive, NULL) == 0, "pthread_create");
  must(pthread_create(&threads[1], NULL, wait_for_signal, NULL) == 0, "pthread_create");
  must(pthread_create(&threads[2], NULL, sleep_in_epoll, NULL) == 0, "pthread_create");
  for (i = 0; i < 3; ++i) must(read(ready[0], &byte, 1) == 1, "read");
  while (!asleep()) sched_yield();
  puts("READY");
  fflush(stdout);
  pthread_join(threads[2], NULL); /* ends with standard input */
  must(write(sockets[1], "x", 1) == 1 && pthread_kill(threads[1], SIGUSR1) == 0, "wake");
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  printf("epoll_wait %d recv %d sigtimedwait %d\n", interrupted_epoll, interrupted_recv, interrupted_sigtimedwait);
  return 0;
}
