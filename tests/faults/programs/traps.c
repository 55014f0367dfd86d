/* Modes of victim.c about what luaspy alloc uses: SIGURG, breakpoints, and a thread that allocates and sleeps. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "victim.h"

/* SIGURG that the program sends to itself, one after the other: each must arrive once, and no other. */
static volatile uint64_t urgent_seen;

static void on_urgent(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  const uint64_t value = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
  if (info->si_code != SI_QUEUE || info->si_pid != getpid()) wrong("SIGURG: si_code %d", info->si_code);
  else if (value != urgent_seen + 1) wrong("SIGURG: not the next one");
  urgent_seen = value;
  add(&board->events);
}

void watch_urgent(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_urgent;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  must(sigaction(SIGURG, &action, NULL) == 0, "sigaction");
}

void send_urgent(void) {
  for (uint64_t number = 1;; ++number) {
    const union sigval value = {.sival_ptr = (void*)(uintptr_t)number};
    must(sigqueue(getpid(), SIGURG, value) == 0, "sigqueue");
    const uint64_t begin = now_ns();
    while (urgent_seen != number) {
      if (now_ns() - begin > 20000000000u) {
        wrong("a SIGURG did not come");
        return;
      }
      pause_us(20);
    }
    pause_us(100);
  }
}

/* Two breakpoints of the program's own count the calls of a function. It takes the other debug registers, too, if they
   are free, and gives them back. */
enum { own = 2, others = 2, calls = 10 };
static int counters[own] = {-1, -1};

__attribute__((noinline)) static void counted(void) { __asm__ volatile(""); }

static int open_breakpoint(void) {
  struct perf_event_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = HW_BREAKPOINT_X;
  attributes.bp_addr = (uintptr_t)&counted;
  attributes.bp_len = sizeof(long);
  attributes.exclude_kernel = 1;
  return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Where they are not allowed, there is nothing to harm. */
void set_breakpoints(void) {
  for (int i = 0; i < own; ++i) counters[i] = open_breakpoint();
}

void count_by_breakpoints(void) {
  static uint64_t counted_before[own];
  static unsigned turn;
  if (counters[0] < 0 || counters[1] < 0 || ++turn % 8 != 0) return;
  int taken[others] = {-1, -1};
  for (int i = 0; i < others && turn % 64 == 0; ++i) {
    taken[i] = open_breakpoint();
    if (taken[i] < 0 && errno != ENOSPC) wrong("another breakpoint: %s", strerror(errno));
  }
  for (int i = 0; i < calls; ++i) counted();
  for (int i = 0; i < own; ++i) {
    uint64_t count = 0;
    must(read(counters[i], &count, sizeof count) == sizeof count, "the count of a breakpoint");
    if (count != counted_before[i] + calls) wrong("a breakpoint counted %d calls", (int)(count - counted_before[i]));
    counted_before[i] = count;
  }
  for (int i = 0; i < others; ++i) {
    if (taken[i] >= 0) close(taken[i]);
  }
  add(&board->events);
}

/* The thread that allocates also sleeps, in a call that any stop would end with EINTR. */
void sleeps_a_little(void) {
  static int set = -1;
  static unsigned turn;
  if (++turn % 8 != 0) return;
  struct epoll_event event;
  if (set < 0) set = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_wait(set, &event, 1, 1) < 0) {
    if (errno != EINTR) wrong("epoll_wait: %s", strerror(errno));
    add(&board->interrupted);
  }
  add(&board->calls);
  add(&board->events);
}
