#include "attach/process.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "attach/program_name.h"
#include "attach/refusal.h"
#include "attach/resident_pages.h"
#include "base/text.h"
#include "base/words.h"
#include "system/calls.h"

namespace luaspy {
namespace {

// proc(5): (22) starttime; (3), the state, is the first field after the name.
std::int64_t start_in(const FileDescriptor& stat_file) {
  std::array<char, 1024> buffer;
  std::string_view rest = system::reread(stat_file, buffer);
  const std::size_t end = rest.rfind(')');
  if (end == rest.npos) return 0;
  rest.remove_prefix(end + 1);
  skip_words(rest, 22 - 3);
  return number<std::int64_t>(next_word(rest));
}

}  // namespace

Thread::Thread(pid_t pid, pid_t tid)
    : tid_(tid),
      name_(name_in(fmt::format("/proc/{}/task/{}/comm", pid, tid))),
      syscall_(system::open_file(fmt::format("/proc/{}/task/{}/syscall", pid, tid), O_RDONLY)),
      schedstat_(system::open_file(fmt::format("/proc/{}/task/{}/schedstat", pid, tid), O_RDONLY)),
      stat_(system::open_file(fmt::format("/proc/{}/task/{}/stat", pid, tid), O_RDONLY)),
      started_(start_in(stat_)),
      pid_(pid) {}

ThreadState state_of(std::string_view syscall, char letter) {
  ThreadState state;
  if (syscall.empty()) {
    // The kernel lacks this file, or the thread is ending. Only a thread known to be running may be
    // stopped, so it is left alone.
    if (letter == 'R') state.kind = ThreadState::Kind::running;
    else if (lives(letter)) state.kind = ThreadState::Kind::sleeping;
    return state;
  }
  if (syscall.starts_with("running")) {
    state.kind = ThreadState::Kind::running;
    return state;
  }
  state.kind = ThreadState::Kind::sleeping;
  state.system_call = number<long>(next_word(syscall));
  if (state.system_call >= 0) {
    for (std::uint64_t& argument : state.arguments) argument = number<std::uint64_t>(next_word(syscall));
  }
  state.sp = number<Address>(next_word(syscall));
  state.pc = number<Address>(next_word(syscall));
  if (state.system_call != -1) return state;
  // It was woken after a stop, but its CPU has not taken it over yet (TASK_WAKING, which stat shows as R: Linux,
  // include/linux/sched.h), as happens where that is a virtual CPU that has to wait itself. It waits for no page.
  if (letter == 'R') return {.kind = ThreadState::Kind::running};
  // What the file says about a thread that has ended but is not collected yet, such as a first
  // thread while others are alive.
  if (state.sp == 0 && !lives(letter)) return {};
  return state;
}

ThreadState Thread::state() const {
  std::array<char, 256> buffer;
  const std::string_view text = system::reread(syscall_, buffer);
  return state_of(text, text.empty() || text.starts_with("-1 ") ? state_letter() : '?');
}

char Thread::state_letter() const {
  std::array<char, 1024> buffer;
  return state_in(system::reread(stat_, buffer));
}

// proc(5): (39) processor. Field 3, the letter, is the first after the name.
Thread::Place Thread::place() const {
  constexpr int fields_between = 39 - 4;
  std::array<char, 1024> buffer;
  std::string_view text = system::reread(stat_, buffer);
  Place place{state_in(text), -1};
  const std::size_t end = text.rfind(')');
  if (end == text.npos || place.letter == '?') return {};
  text.remove_prefix(end + 1);
  skip_words(text, fields_between + 1);
  const std::string_view word = next_word(text);
  if (!word.empty()) place.cpu = number<int>(word);
  return place;
}

int Thread::cpu() const { return place().cpu; }

// kernel/sched/debug.c, proc_sched_show_task(): "se.exec_start   :   702193.708324", in ms.
std::optional<std::int64_t> Thread::counted_at() const {
  if (!sched_) sched_ = system::open_file(fmt::format("/proc/{}/task/{}/sched", pid_, tid_), O_RDONLY);
  std::array<char, 512> buffer;
  const std::string_view text = system::reread(sched_, buffer);
  const std::size_t name = text.find("se.exec_start"), colon = text.find(':', name);
  if (name == text.npos || colon == text.npos) return std::nullopt;
  std::string_view rest = text.substr(colon + 1);
  const std::string_view value = next_word(rest);
  const std::size_t point = value.find('.');
  if (point == value.npos || value.size() - point != 7) return std::nullopt;
  return number<std::int64_t>(value.substr(0, point)) * 1'000'000 + number<std::int64_t>(value.substr(point + 1));
}

Thread::Schedule Thread::schedule() const {
  std::array<char, 128> buffer;
  std::string_view text = system::reread(schedstat_, buffer);
  Schedule schedule;
  schedule.on_cpu = number<std::int64_t>(next_word(text));
  schedule.waited_for_cpu = number<std::int64_t>(next_word(text));
  schedule.runs = number<std::uint64_t>(next_word(text));
  return schedule;
}

// proc(5), /proc/pid/status.
std::int64_t Thread::voluntary_switches() const {
  const std::string status = system::read_file(fmt::format("/proc/{}/task/{}/status", pid_, tid_)).value_or("");
  constexpr std::string_view key = "\nvoluntary_ctxt_switches:";
  const std::size_t at = status.find(key);
  if (at == status.npos) return -1;
  std::string_view rest = std::string_view(status).substr(at + key.size());
  return number<std::int64_t>(next_word(rest));
}

std::string Thread::kernel_stack() const {
  return system::read_file(fmt::format("/proc/{}/task/{}/stack", pid_, tid_)).value_or("");
}

Thread::Times Thread::times() const {
  const Schedule now = schedule();
  return {now.on_cpu, now.waited_for_cpu};
}

Process::Process(pid_t pid) : pid_(pid), task_(system::open_file(proc_path(pid, "task"), O_RDONLY | O_DIRECTORY)) {}

Result<Process> Process::open(pid_t pid) {
  if (!has_own_proc()) return explain_absence(pid);
  const std::optional<std::string> status = system::read_file(proc_path(pid, "stat"));
  struct stat folder {};  // with hidepid=1 it exists, but may not be entered
  if (!status)
    return ::stat(fmt::format("/proc/{}", pid).c_str(), &folder) == 0 ? explain_refusal(pid) : explain_absence(pid);
  const std::size_t comm_end = status->rfind(')');
  std::string_view rest = std::string_view(*status).substr(std::min(comm_end + 1, status->size()));
  const std::string_view state = next_word(rest);
  const pid_t parent = number<pid_t>(next_word(rest));
  const pid_t living = living_thread(pid);
  if ((state == "Z" || state == "X") && living == pid)
    return Error{
        Cause::no_such_process,
        fmt::format("Process {} is a zombie: it has ended, and its parent {} has not collected it yet.", pid, parent)};
  Process process(pid);
  // proc(5): (9) flags; four fields lie between it and (4), the parent. A check for process 2,
  // kthreadd, would work in the first pid namespace only.
  constexpr unsigned kernel_thread = 0x00200000;  // PF_KTHREAD, include/linux/sched.h
  skip_words(rest, 9 - 4 - 1);
  if ((number<unsigned>(next_word(rest)) & kernel_thread) != 0)
    return Error{Cause::unsupported, fmt::format("Process {} is a kernel thread; it runs no Lua.", pid)};

  const std::string tasks = system::read_file(proc_path(living, "status")).value_or("");
  if (const std::size_t at = tasks.find("TracerPid:"); at != std::string::npos) {
    std::string_view line = std::string_view(tasks).substr(at + 10);
    if (const pid_t tracer = number<pid_t>(next_word(line)); tracer != 0)
      return Error{Cause::already_traced,
                   fmt::format("Process {} is already traced by process {} ({}); a process has one tracer at a time.",
                               pid, tracer, name_in(proc_path(tracer, "comm")))};
  }
  const FileDescriptor image = system::open_file(proc_path(living, "exe"), O_RDONLY);
  if (!image || !system::open_file(proc_path(living, "mem"), O_RDONLY)) return explain_refusal(pid);
  std::array<char, EI_NIDENT> ident{};
  if (system::reread(image, ident).size() == ident.size() && ident[EI_CLASS] == ELFCLASS32)
    return Error{Cause::unsupported, fmt::format("Process {} is a 32-bit program; luaspy reads 64-bit ones.", pid)};
  return process;
}

// A process whose first thread has ended is alive as long as another thread is.
bool Process::alive() const {
  return std::ranges::any_of(system::numeric_entries(proc_path(pid_, "task")),
                             [&](pid_t tid) { return thread_lives(pid_, tid); });
}

std::string Process::command() const { return command_of(pid_); }

AddressSpace Process::address_space() const {
  return AddressSpace::parse(system::read_file(proc_path(living_thread(pid_), "maps")).value_or(""));
}

AddressSpace Process::contents(const AddressSpace& space) const { return contents_of(pid_, space); }

// Listing task/ is the expensive part of a tick with many threads. Its link count shows most
// changes, and a thread that another one has replaced is noticed when it is found to have ended
// (forget_threads), or because somebody tells. Other changes are noticed at the next listing.
const std::vector<std::shared_ptr<Thread>>& Process::threads() {
  struct stat status {};
  if (::fstat(task_.number(), &status) != 0) {
    threads_.clear();
    return threads_.all();
  }
  constexpr std::chrono::milliseconds list_every(500);
  const system::Clock::time_point time = system::Clock::now();
  const bool differs = !told_ && status.st_nlink != thread_count_;
  if (!differs && !list_again_ && time - listed_ < list_every) return threads_.all();
  list_again_ = false;
  thread_count_ = status.st_nlink;
  listed_ = time;
  const ByTid<Thread> known = std::exchange(threads_, {});
  for (const pid_t tid : system::numeric_entries(proc_path(pid_, "task"))) {
    std::shared_ptr<Thread> thread = known.find(tid);
    if (thread != nullptr && lives(thread->state_letter())) threads_.add(std::move(thread));
    else add_if_it_lives(tid);  // if a known one has ended, a new one has its number
  }
  return threads_.all();
}

void Process::add_if_it_lives(pid_t tid) {
  auto thread = std::make_shared<Thread>(pid_, tid);
  if (lives(thread->state_letter())) threads_.add(std::move(thread));
}

void Process::add_thread(pid_t tid) {
  told_ = true;
  if (threads_.find(tid) == nullptr) add_if_it_lives(tid);
}

void Process::remove_thread(pid_t tid) {
  told_ = true;
  threads_.remove(tid);
}

FileDescriptor Process::open_mapped(const Mapping& mapping) const { return luaspy::open_mapped(pid_, mapping); }

std::optional<Mapped::Program> Process::program() const {
  const std::string file = system::read_link(proc_path(living_thread(pid_), "exe")).value_or("");
  std::string name = base_name(program_of(pid_));
  if (file.empty() || name == base_name(printable(file, most_shown))) return std::nullopt;
  return Program{file, std::move(name)};
}

std::optional<FileVersion> Process::file_version(const Mapping& mapping) const { return version_of(pid_, mapping); }

}  // namespace luaspy
