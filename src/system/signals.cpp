#include "system/signals.h"

#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include "system/calls.h"

namespace luaspy::system {
namespace {

// Atomic and without locks: handlers write what other threads read (the watchdog asks for the end, too).
std::atomic<int> end_signal = 0;
std::atomic<bool> end_at_once_held = false, end_at_once_wanted = false, suspend_signal = false;
std::atomic<void (*)()> last_action = nullptr, alarm_action = nullptr;
static_assert(decltype(end_signal)::is_always_lock_free && decltype(suspend_signal)::is_always_lock_free &&
              decltype(last_action)::is_always_lock_free);

void end_at_once() {
  if (void (*const action)() = last_action) action();
  ::_exit(128 + SIGINT);
}

void on_end_signal(int signal) {
  if (signal == SIGINT && end_signal == SIGINT) {
    if (!end_at_once_held) end_at_once();
    end_at_once_wanted = true;
  }
  end_signal = signal;
}

void on_suspend_signal(int) { suspend_signal = true; }

void on_alarm(int) {
  const int error = errno;
  if (void (*const action)() = alarm_action) action();
  errno = error;
}

// What was there before watch_signals().
struct Former {
  int signal = 0;
  struct sigaction action {};
};
std::array<Former, 7> former = {
    {{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}, {SIGALRM, {}}, {SIGTSTP, {}}, {SIGPIPE, {}}, {SIGXFSZ, {}}}};
bool has_former = false;

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;  // without SA_RESTART, so that the signal ends a wait
  ::sigaction(signal, &action, nullptr);
}

// mmap(2): an access raises SIGBUS if a mapped file no longer has that page. From now on the page
// reads as zeros.
void on_missing_page(int, siginfo_t* info, void*) {
  const int error = errno;
  const std::uintptr_t page = page_size();
  void* const address = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) / page * page);
  const bool put = info->si_code == BUS_ADRERR &&
                   ::mmap(address, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  if (!put) ::signal(SIGBUS, SIG_DFL);  // the signal is raised again, and ends luaspy
  errno = error;
}

}  // namespace

void watch_signals() {
  for (Former& each : former) {
    if (!has_former) ::sigaction(each.signal, nullptr, &each.action);
  }
  has_former = true;
  for (const int signal : {SIGINT, SIGTERM}) handle(signal, on_end_signal);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) handle(SIGHUP, on_end_signal);  // nohup(1)
  handle(SIGALRM, on_alarm);
  handle(SIGTSTP, on_suspend_signal);
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);  // the write fails instead
  const itimerval period{{0, 100'000}, {0, 100'000}};
  ::setitimer(ITIMER_REAL, &period, nullptr);
}

void handle_signals_as_before() {
  if (!has_former) return;
  for (const Former& each : former) ::sigaction(each.signal, &each.action, nullptr);
}

void outlive_shorter_files() {
  struct sigaction action {};
  action.sa_sigaction = on_missing_page;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

void before_end_at_once(void (*action)()) { last_action = action; }

void at_each_alarm(void (*action)()) { alarm_action = action; }

void hold_end_at_once(bool hold) {
  end_at_once_held = hold;
  if (!hold && end_at_once_wanted) end_at_once();
}

bool suspend_requested() { return suspend_signal; }

void suspend() {
  suspend_signal = false;
  ::signal(SIGTSTP, SIG_DFL);
  ::raise(SIGTSTP);
  handle(SIGTSTP, on_suspend_signal);
}

int end_requested() { return end_signal; }

bool end_is_pending() {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return false;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (sigismember(&pending, signal) == 1) return true;
  }
  return false;
}

std::thread thread_without_signals(std::function<void()> run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(run));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace luaspy::system
