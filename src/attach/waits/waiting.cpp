#include "attach/waits/waiting.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>

#include "attach/waits/futex.h"
#include "base/text.h"
#include "base/words.h"
#include "system/call_names.h"
#include "system/calls.h"

namespace luaspy {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t most_watched = 1000;

// System calls whose first argument is a file descriptor, and which end of a pipe that would be.
struct FileCall {
  long number;
  std::optional<OpenFiles::End> own;
};
constexpr FileCall file_calls[] = {
    {SYS_read, OpenFiles::End::reading},
    {SYS_readv, OpenFiles::End::reading},
    {SYS_write, OpenFiles::End::writing},
    {SYS_writev, OpenFiles::End::writing},
    {SYS_pread64, {}},
    {SYS_pwrite64, {}},
    {SYS_preadv, {}},
    {SYS_pwritev, {}},
    {SYS_fsync, {}},
    {SYS_fdatasync, {}},
    {SYS_close, {}},
    {SYS_flock, {}},
    {SYS_fcntl, {}},
    {SYS_ioctl, {}},
    {SYS_accept, {}},
    {SYS_accept4, {}},
    {SYS_connect, {}},
    {SYS_recvfrom, {}},
    {SYS_recvmsg, {}},
    {SYS_recvmmsg, {}},
    {SYS_sendto, {}},
    {SYS_sendmsg, {}},
    {SYS_sendmmsg, {}},
    {SYS_sendfile, {}},
    {SYS_splice, {}},
    {SYS_io_uring_enter, {}},
    {SYS_mq_timedreceive, {}},
    {SYS_mq_timedsend, {}},
};

int descriptor(std::uint64_t argument) { return static_cast<int>(static_cast<std::uint32_t>(argument)); }

std::string limit_text(const std::optional<nanoseconds>& timeout) {
  return timeout ? "at most " + human_time(*timeout) : "for ever";
}

nanoseconds now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// The time left until a deadline on a clock that luaspy and the target share; monotonic clocks may
// be shifted in a time namespace.
std::optional<nanoseconds> left_until(pid_t pid, nanoseconds end, clockid_t clock) {
  const auto time_namespace = [](const std::string& of) {
    return system::read_link("/proc/" + of + "/ns/time").value_or("");
  };
  if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) return std::nullopt;
  if (clock == CLOCK_MONOTONIC && time_namespace("self") != time_namespace(std::to_string(living_thread(pid))))
    return std::nullopt;
  return std::max(end - now(clock), nanoseconds(0));
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : std::string(separator)) + part;
  return text;
}

}  // namespace

std::string human_time(nanoseconds time) {
  struct Unit {
    std::int64_t seconds;
    const char* name;
  };
  constexpr Unit units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
  const std::int64_t ns = std::max<std::int64_t>(time.count(), 0);
  if (ns < 1'000'000) return fmt::format("{:.3g} us", static_cast<double>(ns) / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.3g} ms", static_cast<double>(ns) / 1e6);
  if (ns < 60'000'000'000) return fmt::format("{:.3g} s", static_cast<double>(ns) / 1e9);
  std::int64_t seconds = ns / 1'000'000'000;
  std::string text;
  int told = 0;
  for (const Unit& unit : units) {
    const std::int64_t count = seconds / unit.seconds;
    seconds %= unit.seconds;
    if (told != 0 && ++told > 2) break;
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", count, unit.name);
    told = std::max(told, 1);
  }
  return text;
}

std::optional<nanoseconds> Waits::time_at(Address address, bool in_microseconds) const {
  struct Time {
    std::int64_t seconds, fraction;
  };
  constexpr std::int64_t most = 1'000'000'000;  // s: 30 years, and all that fits
  if (!plausible_pointer(address)) return std::nullopt;
  const std::optional<Time> time = memory_.get<Time>(address);
  if (!time || time->seconds < 0 || time->fraction < 0 || time->fraction >= most) return std::nullopt;
  return std::chrono::seconds(std::min(time->seconds, 9 * most)) +
         nanoseconds(time->fraction * (in_microseconds ? 1000 : 1));
}

std::string Waits::thread_text(pid_t tid) const {
  const std::string name = system::read_file(fmt::format("/proc/{}/task/{}/comm", process_.pid(), tid)).value_or("");
  std::string_view rest = name;
  return fmt::format("thread {} \"{}\"", tid, printable(next_line(rest)));
}

std::string Waits::about_file(Wait& wait, int fd, std::optional<OpenFiles::End> own) {
  wait.file = files_.describe(fd);
  if (own) {
    if (const std::string other = files_.other_end(fd, *own); !other.empty()) wait.file->what += ", " + other;
  }
  return fmt::format("fd {}: {}", fd, wait.file->what);
}

void Waits::explain_file(long call, const ThreadState& state, Wait& wait, Details& details) {
  const auto form = std::ranges::find(file_calls, call, &FileCall::number);
  if (form == std::end(file_calls)) return;
  const int fd = descriptor(state.arguments[0]);
  details.push_back(about_file(wait, fd, form->own));
  if (call == SYS_flock || call == SYS_fcntl) {
    if (const std::string holder = files_.lock_holder(fd); !holder.empty()) details.push_back("lock " + holder);
  }
  if (call == SYS_ioctl)
    details.push_back(fmt::format("request {:#x}", static_cast<std::uint32_t>(state.arguments[1])));
  if (call != SYS_connect) return;
  constexpr std::uint64_t most = 128;  // sizeof(struct sockaddr_storage)
  std::vector<std::byte> bytes(std::min(state.arguments[2] & 0xffffffff, most));
  const std::string address = memory_.read(state.arguments[1], bytes) ? describe_address(bytes) : "";
  if (!address.empty() && wait.file->what.find(address) == std::string::npos) details.push_back("to " + address);
}

void Waits::watch_polled(Address array, std::uint64_t count, Wait& wait) {
  count &= 0xffffffff;
  left_out_ = count > most_watched ? count - most_watched : 0;
  std::vector<pollfd> entries(count - left_out_);
  if (entries.empty() || !memory_.read(array, std::as_writable_bytes(std::span(entries)))) return;
  for (const pollfd& entry : entries) {
    if (entry.fd >= 0) wait.watched.push_back(files_.describe(entry.fd));  // poll(2): negative ones are ignored
  }
}

// select(2): three sets of bits, in words of 8 bytes.
void Waits::watch_selected(const ThreadState& state, Wait& wait) {
  constexpr std::uint64_t most_words = 1024;
  const std::uint64_t bits = std::min<std::uint64_t>(state.arguments[0] & 0xffffffff, most_words * 64),
                      words = (bits + 63) / 64;
  std::vector<std::uint64_t> all(words), set(words);
  for (std::size_t i = 1; i <= 3; ++i) {
    if (words == 0 || state.arguments[i] == 0 ||
        !memory_.read(state.arguments[i], std::as_writable_bytes(std::span(set))))
      continue;
    for (std::size_t word = 0; word < words; ++word) all[word] |= set[word];
  }
  for (std::uint64_t fd = 0; fd < bits; ++fd) {
    if ((all[fd / 64] >> fd % 64 & 1) == 0) continue;
    if (wait.watched.size() < most_watched) wait.watched.push_back(files_.describe(static_cast<int>(fd)));
    else ++left_out_;
  }
}

bool Waits::explain_files(long call, const ThreadState& state, Wait& wait, Details& details) {
  const auto in_ms = [](std::uint64_t argument) -> std::optional<nanoseconds> {
    const auto ms = static_cast<std::int32_t>(static_cast<std::uint32_t>(argument));
    return ms < 0 ? std::nullopt : std::optional<nanoseconds>(std::chrono::milliseconds(ms));
  };
  left_out_ = 0;
#ifdef SYS_epoll_pwait2
  const bool with_timespec = call == SYS_epoll_pwait2;
#else
  const bool with_timespec = false;
#endif
  if (call == SYS_epoll_wait || call == SYS_epoll_pwait || with_timespec) {
    const int fd = descriptor(state.arguments[0]);
    wait.file = files_.describe(fd);
    wait.watched = files_.watched_by(fd, most_watched, left_out_);
    wait.timeout = with_timespec ? time_at(state.arguments[3]) : in_ms(state.arguments[3]);
    details.push_back(fmt::format("fd {}: {}", fd, summary(wait.watched, left_out_)));
  } else if (call == SYS_poll || call == SYS_ppoll) {
    watch_polled(state.arguments[0], state.arguments[1], wait);
    wait.timeout = call == SYS_ppoll ? time_at(state.arguments[2]) : in_ms(state.arguments[2]);
    details.push_back(summary(wait.watched, left_out_));
  } else if (call == SYS_select || call == SYS_pselect6) {
    watch_selected(state, wait);
    wait.timeout = time_at(state.arguments[4], call == SYS_select);
    details.push_back(summary(wait.watched, left_out_));
  } else {
    return false;
  }
  if (wait.watched.size() == 1 && left_out_ == 0)
    details.back() = fmt::format("fd {}: {}", wait.watched[0].fd, wait.watched[0].what);
  details.push_back(limit_text(wait.timeout));
  return true;
}

bool Waits::explain_sleep(long call, const ThreadState& state, Wait& wait, Details& details) {
  if (call == SYS_nanosleep) {
    wait.timeout = time_at(state.arguments[0]);
  } else if (call == SYS_clock_nanosleep) {
    wait.timeout = time_at(state.arguments[2]);
    if ((state.arguments[1] & TIMER_ABSTIME) != 0 && wait.timeout) {
      wait.timeout = left_until(process_.pid(), *wait.timeout, static_cast<clockid_t>(state.arguments[0]));
      if (wait.timeout) details.push_back(human_time(*wait.timeout) + " left");
      return true;
    }
  } else if (call == SYS_rt_sigtimedwait) {
    wait.timeout = time_at(state.arguments[2]);
    details.push_back("a signal; " + limit_text(wait.timeout));
    return true;
  } else if (call == SYS_pause || call == SYS_rt_sigsuspend) {
    details.push_back("a signal");
    return true;
  } else {
    return false;
  }
  if (wait.timeout) details.push_back(human_time(*wait.timeout));
  return true;
}

void Waits::explain_futex_wait(const ThreadState& state, Wait& wait, Details& details) {
  const FutexWait futex = explain_futex([this](pid_t inside) { return thread_numbered(process_.pid(), inside); },
                                        state.arguments, memory_);
  wait.futex = futex.address;
  if (futex.kind == FutexWait::Kind::join) {
    wait.joined_thread = futex.owner;
    details.push_back(fmt::format("wait for {} to end", thread_text(futex.owner)));
  } else if (futex.kind == FutexWait::Kind::mutex) {
    std::string text = fmt::format("wait for the mutex at {:#x}", futex.address);
    if (futex.owner != 0) wait.mutex_owner = futex.owner, text += " held by " + thread_text(futex.owner);
    details.push_back(text);
  } else {
    details.push_back(fmt::format("wait at {:#x}", futex.address));
  }
  const std::optional<nanoseconds> time = time_at(futex.timeout_address);
  if (!time) return;
  const bool relative = futex.timeout == FutexWait::Timeout::relative;
  const clockid_t clock = futex.timeout == FutexWait::Timeout::absolute_realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  wait.timeout = relative ? time : left_until(process_.pid(), *time, clock);
  if (wait.timeout) details.push_back(relative ? limit_text(wait.timeout) : human_time(*wait.timeout) + " left");
}

namespace {

// "4711 (sleep 2)". One that has not executed a program of its own has its parent's command: then "4711 (its name)".
std::string describe_child(pid_t parent, pid_t child) {
  constexpr std::size_t most_command = 80;
  const std::string command = command_of(child);
  if (command.empty() || command == command_of(parent)) return describe_process(child);
  return fmt::format("{} ({})", child, printable(command, most_command));
}

}  // namespace

bool Waits::explain_children(long call, const ThreadState& state, Wait& wait, Details& details) {
  if (call != SYS_wait4 && call != SYS_waitid && call != SYS_vfork) return false;
  constexpr std::size_t most_named = 4;
  const bool by_id = call == SYS_wait4 ? descriptor(state.arguments[0]) > 0
                                       : call == SYS_waitid && state.arguments[0] == P_PID;
  const pid_t wanted = descriptor(state.arguments[call == SYS_wait4 ? 0 : 1]);
  wait.children = children_of(process_.pid());
  if (by_id)
    std::erase_if(wait.children, [&](pid_t child) { return child != wanted && thread_numbered(child, wanted) == 0; });
  std::vector<std::string> names;
  for (const pid_t child : std::span(wait.children).first(std::min(most_named, wait.children.size())))
    names.push_back(describe_child(process_.pid(), child));
  if (wait.children.size() > most_named) names.push_back(fmt::format("{} more", wait.children.size() - most_named));
  const bool is_one = by_id || wait.children.size() == 1;
  if (is_one && names.empty()) details.push_back(fmt::format("child {}", wanted));
  else if (is_one) details.push_back(fmt::format("its child {} runs", names[0]));
  else details.push_back("any child: " + joined(names, ", "));
  return true;
}

Wait Waits::explain(const Thread& thread, const ThreadState& state) {
  Wait wait;
  wait.halt = halt_of(process_.pid(), thread);
  const bool halted = wait.halt.kind != Halt::Kind::none;
  wait.uninterruptible = !halted && thread.state_letter() == 'D';
  wait.wchan = printable(
      system::read_file(fmt::format("/proc/{}/task/{}/wchan", process_.pid(), thread.tid())).value_or(""));
  if (wait.wchan == "0") wait.wchan.clear();
  const std::string name = system_call_name(state.system_call);  // in brackets
  wait.system_call = name.substr(1, name.size() - 2);
  Details details;
  bool explained = false;
  if (state.system_call >= 0) {
    explain_file(state.system_call, state, wait, details);
    explained = !details.empty() || explain_files(state.system_call, state, wait, details) ||
                explain_sleep(state.system_call, state, wait, details) ||
                explain_children(state.system_call, state, wait, details);
    if (state.system_call == SYS_futex) explained = true, explain_futex_wait(state, wait, details);
  }
  if (thread.state() != state) {
    Wait plain;
    plain.system_call = plain.text = wait.system_call;
    return plain;
  }
  if (halted) {
    // A halted thread waits for something only if it is in a system call that waits: it may also
    // have been halted at the return of any other call.
    wait.text = halt_text(wait.halt, process_.pid());
    if (!explained) wait.system_call = luaspy::name(wait.halt.kind);
    else wait.text += fmt::format(", in {}({})", wait.system_call, joined(details, "; "));
    return wait;
  }
  // A wait that a stop or a signal has interrupted continues under another number
  // (restart_syscall(2)).
  if ((!explained || wait.uninterruptible) && !wait.wchan.empty()) details.push_back("in the kernel's " + wait.wchan);
  if (wait.uninterruptible) details.push_back("uninterruptible");
  wait.text = details.empty() ? wait.system_call : fmt::format("{}({})", wait.system_call, joined(details, "; "));
  return wait;
}

std::vector<std::vector<pid_t>> deadlocks(std::span<const std::pair<pid_t, pid_t>> owners) {
  std::vector<std::vector<pid_t>> rings;
  for (const auto& [first, unused] : owners) {
    std::vector<pid_t> ring = {first};
    while (ring.size() <= owners.size()) {
      const auto next = std::ranges::find(owners, ring.back(), &std::pair<pid_t, pid_t>::first);
      if (next == owners.end() || next->second == first) {
        // Each ring is found from all of its threads, but is reported once, from the lowest one.
        if (next != owners.end() && std::ranges::min(ring) == first) rings.push_back(ring);
        break;
      }
      ring.push_back(next->second);
    }
  }
  return rings;
}

}  // namespace luaspy
