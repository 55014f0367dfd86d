/* waits FOLDER: a thread for each way to wait, with that name. Prints lines "key value" (ports, pids), then READY.
   A child named "holder" has the locks on FOLDER/flock and FOLDER/fcntl. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[200];
static pid_t holder;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER, own = PTHREAD_MUTEX_INITIALIZER,
                       robust, inheriting, with_cond = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static pthread_t lock_a_thread;
static struct sockaddr_in listens;

static void* fail(const char* what) {
  perror(what);
  _exit(1);
}

static int open_in(const char* name) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int fd = open(path, O_RDWR | O_CREAT, 0666);
  if (fd < 0) fail(path);
  return fd;
}

static int listen_unix(const char* name, int backlog, struct sockaddr_un* address) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  snprintf(address->sun_path, sizeof address->sun_path, "%.80s/%.20s", folder, name);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(fd, (struct sockaddr*)address, sizeof *address) != 0 || listen(fd, backlog) != 0) fail("unix socket");
  return fd;
}

static void* read_pipe(void* x) {
  char c;
  return read(0, &c, 1) < 0 ? x : NULL;
}
static void* accepts(void* x) { return accept(*(int*)x, NULL, NULL) < 0 ? x : NULL; }
static void* receives(void* x) {
  char c;
  return recv(*(int*)x, &c, 1, 0) < 0 ? x : NULL;
}

static void watch(int epoll, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
}

static void* epolls(void* x) {
  struct sockaddr_un address;
  struct epoll_event event;
  const int epoll = epoll_create1(0);
  int k, pair[2];
  watch(epoll, listen_unix("epoll", 1, &address));
  watch(epoll, eventfd(0, 0));
  for (k = 0; k < 2; ++k) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) fail("socketpair");
    watch(epoll, pair[0]);
  }
  epoll_wait(epoll, &event, 1, -1);
  return x;
}

static void* polls(void* x) {
  int ends[2];
  if (pipe(ends) != 0) fail("pipe");
  struct pollfd entries[] = {{ends[0], POLLIN, 0}, {-1, 0, 0}};
  poll(entries, 2, 3600000);
  return x;
}

static void* selects(void* x) {
  struct timeval time = {90, 0};
  const int fd = eventfd(0, 0);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  select(fd + 1, &set, NULL, NULL, &time);
  return x;
}

static void* flocks(void* x) {
  flock(open_in("flock"), LOCK_EX);
  return x;
}
static void* fcntls(void* x) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  fcntl(open_in("fcntl"), F_SETLKW, &lock);
  return x;
}

static void* cross(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  pthread_barrier_wait(&both);
  pthread_mutex_lock(second);
  return NULL;
}
static void* lock_a(void* x) {
  (void)x;
  return cross(&b, &a);
}
static void* lock_b(void* x) {
  (void)x;
  return cross(&a, &b);
}
static void* lock_own(void* x) {
  pthread_mutex_lock(&own);
  pthread_mutex_lock(&own);
  return x;
}
static void* lock_robust(void* x) {
  pthread_mutex_lock(&robust);
  return x;
}
static void* lock_pi(void* x) {
  pthread_mutex_lock(&inheriting);
  return x;
}
static void* lock_stdio(void* x) {
  flockfile(stderr);
  return x;
}
static void* joins(void* x) {
  pthread_join(lock_a_thread, NULL);
  return x;
}

static void* cond_wait(void* x) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_sec += 7200;
  pthread_mutex_lock(&with_cond);
  pthread_cond_timedwait(&cond, &with_cond, &time);
  return x;
}

static void* sleeps(void* x) {
  sleep(3600);
  return x;
}
static void* sleeps_until(void* x) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_sec += 5400;
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
  return x;
}
static void* wait_any(void* x) {
  wait4(-1, NULL, 0, NULL);
  return x;
}
static void* wait_one(void* x) {
  wait4(holder, NULL, 0, NULL);
  return x;
}
static void* pauses(void* x) {
  pause();
  return x;
}

static void* connects(void* x) {
  struct sockaddr_un address;
  int k;
  listen_unix("full", 0, &address);
  for (k = 0; k < 3; ++k) connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr*)&address, sizeof address);
  return x;
}

static void* read_terminal(void* x) {
  char c;
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (grantpt(master) != 0 || unlockpt(master) != 0) fail("pty");
  return read(open(ptsname(master), O_RDWR | O_NOCTTY), &c, 1) < 0 ? x : NULL;
}

static pthread_t begin(const char* name, void* (*body)(void*), void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, body, argument) != 0) fail(name);
  pthread_setname_np(thread, name);
  return thread;
}

static void hold_locks(void) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int ready[2];
  char c;
  if (pipe(ready) != 0) fail("pipe");
  holder = fork();
  if (holder == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "holder");
    close(0), close(1);
    if (flock(open_in("flock"), LOCK_EX) != 0 || fcntl(open_in("fcntl"), F_SETLK, &lock) != 0 ||
        write(ready[1], "", 1) != 1)
      fail("locks");
    for (;;) pause();
  }
  if (read(ready[0], &c, 1) != 1) fail("holder");
  close(ready[0]), close(ready[1]);
}

int main(int argc, char** argv) {
  socklen_t size = sizeof listens;
  pthread_mutexattr_t attribute;
  struct sockaddr_in local;
  static int listener, client;
  snprintf(folder, sizeof folder, "%s", argc > 1 ? argv[1] : ".");
  hold_locks();
  listens.sin_family = AF_INET;
  listens.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&listens, size) != 0 || listen(listener, 5) != 0 ||
      getsockname(listener, (struct sockaddr*)&listens, &size) != 0)
    fail("listen");
  client = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(client, (struct sockaddr*)&listens, sizeof listens) != 0 ||
      getsockname(client, (struct sockaddr*)&local, &size) != 0)
    fail("connect");
  if (accept(listener, NULL, NULL) < 0) fail("accept");
  printf("port %d\nlocal %d\nholder %d\n", ntohs(listens.sin_port), ntohs(local.sin_port), holder);

  pthread_mutexattr_init(&attribute);
  pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&robust, &attribute);
  pthread_mutexattr_init(&attribute);
  pthread_mutexattr_setprotocol(&attribute, PTHREAD_PRIO_INHERIT);
  pthread_mutex_init(&inheriting, &attribute);
  pthread_mutex_lock(&robust);
  pthread_mutex_lock(&inheriting);
  flockfile(stderr);
  pthread_barrier_init(&both, NULL, 2);

  begin("read", read_pipe, NULL);
  begin("accept", accepts, &listener);
  begin("recv", receives, &client);
  begin("epoll", epolls, NULL);
  begin("poll", polls, NULL);
  begin("select", selects, NULL);
  begin("flock", flocks, NULL);
  begin("fcntl", fcntls, NULL);
  lock_a_thread = begin("lock_a", lock_a, NULL);
  begin("lock_b", lock_b, NULL);
  begin("own", lock_own, NULL);
  begin("robust", lock_robust, NULL);
  begin("pi", lock_pi, NULL);
  begin("stdio", lock_stdio, NULL);
  begin("join", joins, NULL);
  begin("cond", cond_wait, NULL);
  begin("sleep", sleeps, NULL);
  begin("until", sleeps_until, NULL);
  begin("wait_any", wait_any, NULL);
  begin("wait_one", wait_one, NULL);
  begin("pause", pauses, NULL);
  begin("connect", connects, NULL);
  begin("terminal", read_terminal, NULL);
  puts("READY");
  fflush(stdout);
  for (;;) pause();
}
