/* Modes of victim.c about signals: queued ones, timers, stopping and continuing. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "victim.h"

/* Queued signals carry numbers: each must arrive once, in order, with its sender (sigqueue(3), signal(7): equal signals
 * are delivered in the order sent). */
static volatile uint64_t sent[2], seen[2];
static int numbers[2];

static void on_queued(int number, siginfo_t* info, void* context) {
  (void)context;
  const int kind = number == numbers[1];
  const uint64_t value = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
  if (value != seen[kind])
    wrong("queued signal %d: %llu came, %llu was next", number, (unsigned long long)value,
          (unsigned long long)seen[kind]);
  if (info->si_code != SI_QUEUE || info->si_pid != getpid())
    wrong("queued signal %d: si_code %d, si_pid %d", number, info->si_code, info->si_pid);
  seen[kind] = value + 1;
  add(&board->events);
}

void watch_queue(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_queued;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  numbers[0] = SIGRTMIN + 1, numbers[1] = SIGRTMIN + 2;
  for (int kind = 0; kind < 2; ++kind) must(sigaction(numbers[kind], &action, NULL) == 0, "sigaction");
}

void queue_signals(void) {
  for (unsigned turn = 0;; ++turn) {
    const int kind = turn % 2;
    const int burst = 1 + (int)(turn % 13);
    for (int i = 0; i < burst; ++i) {
      const union sigval value = {.sival_ptr = (void*)(uintptr_t)sent[kind]};
      if (sigqueue(getpid(), numbers[kind], value) == 0) ++sent[kind];
      else must(errno == EAGAIN, "sigqueue");
    }
    const uint64_t begin = now_ns();
    while (seen[kind] != sent[kind]) {
      if (now_ns() - begin > 20000000000u) {
        wrong("queued signal %d: %llu of %llu came", numbers[kind], (unsigned long long)seen[kind],
              (unsigned long long)sent[kind]);
        return;
      }
      pause_us(20);
    }
  }
}

/* A timer that expires each millisecond: expirations and overruns add up to the time that has passed
 * (timer_getoverrun(2)). */
static timer_t timer;
static volatile uint64_t expired;
static uint64_t first_ns;
enum { period_ns = 1000000 };

static void on_timer(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  if (info->si_code != SI_TIMER) wrong("timer: si_code %d", info->si_code);
  expired += 1 + (uint64_t)info->si_overrun;
  add(&board->events);
}

static void on_alarm(int number) { (void)number; }

void start_timer(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_timer;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  must(sigaction(SIGRTMIN + 3, &action, NULL) == 0, "sigaction");
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  must(sigaction(SIGALRM, &action, NULL) == 0 && sigaction(SIGPROF, &action, NULL) == 0, "sigaction");
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGRTMIN + 3;
  must(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
  first_ns = now_ns() + period_ns;
  const struct itimerspec times = {{0, period_ns}, {(time_t)(first_ns / 1000000000u), (long)(first_ns % 1000000000u)}};
  must(timer_settime(timer, TIMER_ABSTIME, &times, NULL) == 0, "timer_settime");
  ualarm(700, 700);
}

void check_timer(void) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGRTMIN + 3);
  sigprocmask(SIG_BLOCK, &one, NULL);
  const uint64_t counted = expired, now = now_ns();
  sigset_t pending;
  sigpending(&pending);
  const int open = sigismember(&pending, SIGRTMIN + 3);
  sigprocmask(SIG_UNBLOCK, &one, NULL);
  const uint64_t due = now < first_ns ? 0 : (now - first_ns) / period_ns + 1;
  if (counted > due)
    wrong("timer: %llu expirations, %llu were due", (unsigned long long)counted, (unsigned long long)due);
  if (!open && counted + 2 < due)
    wrong("timer: %llu expirations, %llu were due", (unsigned long long)counted, (unsigned long long)due);
}

/* Job control. The first process is the parent: it stops and continues its child, which works, and wait(2) must report
 * each of these once. */
static void expect(pid_t child, int options, int (*is)(int), const char* what) {
  int status = 0;
  const pid_t pid = waitpid(child, &status, options);
  if (pid != child || !is(status)) wrong("waitpid for %s: %d, status %#x", what, pid, (unsigned)status);
}
static int last_signal;
static int is_stopped(int status) { return WIFSTOPPED(status) && WSTOPSIG(status) == last_signal; }
static int is_continued(int status) { return WIFCONTINUED(status); }

static void stop_and_continue(pid_t child, unsigned turn) {
  static const int stop_signals[] = {SIGSTOP, SIGTSTP, SIGTTIN};
  last_signal = stop_signals[turn % 3];
  must(kill(child, last_signal) == 0, "kill");
  expect(child, WUNTRACED, is_stopped, "the stop");
  const uint64_t progress = __atomic_load_n(&board->progress, __ATOMIC_SEQ_CST);
  pause_us(100 + turn * 7919 % 3000);
  if (__atomic_load_n(&board->progress, __ATOMIC_SEQ_CST) != progress)
    wrong("it works while it is stopped by signal %d", last_signal);
  int status = 0;
  if (waitpid(child, &status, WNOHANG | WUNTRACED | WCONTINUED) != 0)
    wrong("a second report of a stop, %#x", (unsigned)status);
  must(kill(child, SIGCONT) == 0, "kill");
  expect(child, WCONTINUED, is_continued, "the continuation");
  const uint64_t begin = now_ns();
  while (__atomic_load_n(&board->progress, __ATOMIC_SEQ_CST) == progress) {
    if (now_ns() - begin > 10000000000u) {
      wrong("it does not go on after SIGCONT");
      return;
    }
    pause_us(50);
  }
  if (waitpid(child, &status, WNOHANG | WUNTRACED | WCONTINUED) != 0)
    wrong("a second report of a continuation, %#x", (unsigned)status);
  add(&board->events);
}

/* Starts a child that works and is profiled; returns 0 in the child. */
static pid_t start_worker(void) {
  const pid_t parent = getpid(), child = fork();
  must(child >= 0, "fork");
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  must(getppid() == parent && setpgid(0, 0) == 0, "setpgid");
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  board->worker = (uint64_t)getpid();
  start_thread(busy_thread);
  return 0;
}

/* A parent that waits for any change of its children, and must not be notified of any: what a tracer does to them is
 * reported only to the tracer. */
void be_waited_for(void) {
  if (start_worker() == 0) return;
  for (;;) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WUNTRACED | WCONTINUED);
    if (child > 0) wrong("its parent is told of status %#x", (unsigned)status);
    else if (errno != EINTR) wrong("its parent waits for nobody: %s", strerror(errno)), pause_us(100000);
    if (child > 0) add(&board->events);
  }
}

void be_stopped_by_parent(void) {
  const pid_t child = start_worker();
  if (child == 0) return; /* it works */
  while (__atomic_load_n(&board->progress, __ATOMIC_SEQ_CST) < 2) pause_us(100);
  for (unsigned turn = 0;; ++turn) {
    stop_and_continue(child, turn);
    pause_us(100 + turn * 104729 % 5000);
  }
}
