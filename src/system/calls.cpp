#include "system/calls.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstring>

#include "system/kernel_registers.h"

namespace luaspy::system {
namespace {

Failure failure_if(bool failed) { return {failed ? errno : 0}; }

}  // namespace

bool Failure::no_such_process() const { return code == ESRCH; }
bool Failure::not_permitted() const { return code == EPERM || code == EACCES; }
bool Failure::access_denied() const { return code == EACCES; }
bool Failure::no_space() const { return code == ENOSPC; }
bool Failure::too_many_files() const { return code == EMFILE || code == ENFILE; }
bool Failure::not_implemented() const { return code == ENOSYS; }
bool Failure::not_found() const { return code == ENOENT; }
std::string Failure::text() const { return std::strerror(code); }

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

FileDescriptor open_file(const std::string& path, int flags, Failure* failure) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0666));
  if (failure != nullptr) *failure = failure_if(!file);
  return file;
}

FileDescriptor open_in_root(const FileDescriptor& root, const std::string& path, int flags, Failure* failure) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  FileDescriptor file(static_cast<int>(::syscall(SYS_openat2, root.number(), path.c_str(), &how, sizeof how)));
  *failure = failure_if(!file);
  return file;
}

std::optional<std::string> read_file(const std::string& path) {
  const FileDescriptor file = open_file(path, O_RDONLY);
  if (!file) return std::nullopt;
  constexpr std::size_t limit = 64 << 20;
  std::string text;
  std::array<char, 65536> buffer;
  while (text.size() < limit) {
    const ssize_t count = ::read(file.number(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::string_view reread(const FileDescriptor& file, std::span<char> buffer) {
  const ssize_t count = ::pread(file.number(), buffer.data(), buffer.size(), 0);
  return {buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

Failure why_unreadable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {errno};
  if (S_ISDIR(status.st_mode)) return {EISDIR};
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) return {errno};
  return {};
}

FileDescriptor make_temporary_file(std::string& path, Failure& failure) {
  FileDescriptor file(::mkostemp(path.data(), O_APPEND | O_CLOEXEC));
  failure = failure_if(!file);
  return file;
}

Failure write_all(int file_descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return {written < 0 ? errno : EIO};
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::optional<std::string> read_link(const std::string& path) {
  std::array<char, PATH_MAX> buffer;
  const ssize_t count = ::readlink(path.c_str(), buffer.data(), buffer.size());
  if (count < 0) return std::nullopt;
  return std::string(buffer.data(), static_cast<std::size_t>(count));
}

std::optional<FileIdentity> file_identity(const std::string& path) {
  constexpr unsigned device_bits = 32, wanted = STATX_TYPE | STATX_INO;
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, wanted, &status) != 0 || (status.stx_mask & wanted) != wanted)
    return std::nullopt;
  return FileIdentity{static_cast<std::uint32_t>(status.stx_mode & S_IFMT),
                      std::uint64_t{status.stx_dev_major} << device_bits | status.stx_dev_minor, status.stx_ino};
}

std::vector<pid_t> numeric_entries(const std::string& directory, Failure* failure) {
  std::vector<pid_t> numbers;
  DIR* const stream = ::opendir(directory.c_str());
  if (failure != nullptr) *failure = failure_if(stream == nullptr);
  if (stream == nullptr) return numbers;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    pid_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
  }
  ::closedir(stream);
  std::ranges::sort(numbers);
  return numbers;
}

Failure read_memory(pid_t pid, std::span<const iovec> local, std::span<const iovec> remote, std::size_t& bytes_read) {
  const ssize_t count = ::process_vm_readv(pid, local.data(), local.size(), remote.data(), remote.size(), 0);
  bytes_read = count > 0 ? static_cast<std::size_t>(count) : 0;
  return failure_if(count < 0);
}

bool read_at(const FileDescriptor& file, Address address, std::span<std::byte> into) {
  const ssize_t count = ::pread(file.number(), into.data(), into.size(), static_cast<off_t>(address));
  return count >= 0 && static_cast<std::size_t>(count) == into.size();
}

std::size_t read_some_at(const FileDescriptor& file, Address address, std::span<std::byte> into, bool& is_gone) {
  const ssize_t count = ::pread(file.number(), into.data(), into.size(), static_cast<off_t>(address));
  is_gone = count == 0 && !into.empty();
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

Failure control(const FileDescriptor& file, unsigned long request, void* argument, int& result) {
  result = ::ioctl(file.number(), request, argument);
  return failure_if(result < 0);
}

Failure find_process(pid_t pid) { return failure_if(::kill(pid, 0) != 0); }

// No process has number 0: if the call reaches the kernel, it fails with ESRCH; if a seccomp filter
// rejects it, the error is a different one.
Failure may_stop() {
  const Failure failure = seize(0);
  return failure.no_such_process() ? Failure{} : failure;
}

Failure seize(pid_t tid) { return failure_if(::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0); }
Failure interrupt(pid_t tid) { return failure_if(::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0); }
bool is_from_file(pid_t tid) {
  siginfo_t info{};
  return ::ptrace(PTRACE_GETSIGINFO, tid, nullptr, &info) == 0 && info.si_code >= POLL_IN && info.si_code <= POLL_HUP;
}

std::optional<Address> trapped_at(pid_t tid) {
  siginfo_t info{};
  if (::ptrace(PTRACE_GETSIGINFO, tid, nullptr, &info) != 0 || info.si_signo != SIGTRAP) return std::nullopt;
  if (info.si_code != TRAP_BRKPT && info.si_code != TRAP_HWBKPT) return std::nullopt;
  return reinterpret_cast<Address>(info.si_addr);
}

Failure resume(pid_t tid) { return failure_if(::ptrace(PTRACE_CONT, tid, nullptr, nullptr) != 0); }

Failure detach(pid_t tid, int signal) {
  return failure_if(::ptrace(PTRACE_DETACH, tid, nullptr, static_cast<long>(signal)) != 0);
}

Failure read_registers(pid_t tid, Registers& registers, bool* at_system_call) {
  user_regs_struct raw;
  iovec vector{&raw, sizeof raw};
  if (::ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &vector) != 0) return {errno};
  registers = registers_of(raw);
  if (at_system_call != nullptr) *at_system_call = is_at_system_call(raw);
  return {};
}

namespace {

WaitStatus status_of(pid_t changed, int status) {
  if (changed == 0) return {};
  if (changed < 0) return {errno == EINTR ? WaitStatus::Kind::interrupted : WaitStatus::Kind::ended};
  if (WIFEXITED(status)) return {WaitStatus::Kind::ended, 0, false, WEXITSTATUS(status)};
  if (WIFSIGNALED(status)) return {WaitStatus::Kind::ended, 0, false, 128 + WTERMSIG(status)};
  // ptrace(2): a stop with an event in bits 16 up (PTRACE_EVENT_STOP) carries no signal to deliver;
  // any other stop is a signal-delivery-stop, whose signal would be lost if it were not passed on.
  const bool event = status >> 16 != 0;
  // Of group-stops, the event's signal is the one that stopped the group; of others it is SIGTRAP.
  return {WaitStatus::Kind::stopped, event ? 0 : WSTOPSIG(status), event && WSTOPSIG(status) != SIGTRAP};
}

}  // namespace

FileDescriptor open_perf_event(const perf_event_attr& attributes, pid_t tid, int group, Failure& failure, int cpu) {
  FileDescriptor event(
      static_cast<int>(::syscall(SYS_perf_event_open, &attributes, tid, cpu, group, PERF_FLAG_FD_CLOEXEC)));
  if (!event) failure = {errno};
  return event;
}

void wait_for_files(std::span<pollfd> files, std::int64_t most_ns) {
  constexpr std::int64_t second_ns = 1'000'000'000;
  const timespec most{most_ns / second_ns, most_ns % second_ns};
  (void)::ppoll(files.data(), files.size(), &most, nullptr);
}

Failure send_signal_when_ready(const FileDescriptor& file, int signal, pid_t tid) {
  const f_owner_ex owner{F_OWNER_TID, tid};
  const bool sent = ::fcntl(file.number(), F_SETOWN_EX, &owner) == 0 && ::fcntl(file.number(), F_SETSIG, signal) == 0 &&
                    ::fcntl(file.number(), F_SETFL, O_ASYNC | O_NONBLOCK) == 0;
  return {sent ? 0 : errno};
}

WaitStatus wait_for(pid_t tid, bool block) {
  int status = 0;
  const pid_t changed = ::waitpid(tid, &status, __WALL | (block ? 0 : WNOHANG));
  return status_of(changed, status);
}

WaitStatus wait_for_any(pid_t& tid) {
  int status = 0;
  tid = ::waitpid(-1, &status, __WALL | __WNOTHREAD);
  return status_of(tid, status);
}

namespace {

bool has_ended(const siginfo_t& info) {
  return info.si_pid != 0 && (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED);
}

}  // namespace

// Of a traced thread, a wait reports stops, too, whatever it asks for (kernel/exit.c, wait_task_stopped).
bool reap_if_ended(pid_t tid) {
  constexpr int options = WEXITED | WNOHANG | __WALL;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(tid), &info, options | WNOWAIT) != 0 || !has_ended(info)) return false;
  return ::waitid(P_PID, static_cast<id_t>(tid), &info, options) == 0;
}

Alarm::Alarm() {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGALRM;
  event._sigev_un._tid = ::gettid();
  timer_t timer = nullptr;
  exists_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
  timer_ = timer;
}

Alarm::~Alarm() {
  if (exists_) ::timer_delete(static_cast<timer_t>(timer_));
}

void Alarm::set(Clock::time_point time, Clock::duration again) {
  const auto spec = [](std::int64_t ns) { return timespec{ns / 1'000'000'000, ns % 1'000'000'000}; };
  const itimerspec when{spec(to_ns(again)), spec(to_ns(time.time_since_epoch()))};
  if (exists_) ::timer_settime(static_cast<timer_t>(timer_), TIMER_ABSTIME, &when, nullptr);
}

void Alarm::clear() {
  const itimerspec never{};
  if (exists_) ::timer_settime(static_cast<timer_t>(timer_), 0, &never, nullptr);
}

// WNOWAIT leaves the report of a stop to the thread that it belongs to. An end is then collected
// with waitpid(2).
WaitStatus wait_for_end(pid_t child) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0)
    return {errno == EINTR ? WaitStatus::Kind::interrupted : WaitStatus::Kind::ended};
  if (!has_ended(info)) return {};
  return wait_for(child, false);
}

void await_end(pid_t child, std::chrono::milliseconds patience) {
  const FileDescriptor end(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!end) {
    (void)sleep_until(Clock::now() + std::min(patience, std::chrono::milliseconds(20)));
    return;
  }
  pollfd ended{end.number(), POLLIN, 0};
  (void)::poll(&ended, 1, static_cast<int>(patience.count()));
}

bool sleep_until(Clock::time_point deadline) {
  const auto since_epoch = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch()).count();
  const timespec time{since_epoch / 1'000'000'000, since_epoch % 1'000'000'000};
  return ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == 0;
}

bool is_terminal(int file_descriptor) { return ::isatty(file_descriptor) == 1; }

}  // namespace luaspy::system
