#include "ps/lua_processes.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "attach/live_memory.h"
#include "attach/mapped_files.h"
#include "attach/process.h"
#include "attach/program_name.h"
#include "attach/refusal.h"
#include "attach/resident_pages.h"
#include "base/text.h"
#include "base/words.h"
#include "luastate/locate.h"
#include "system/calls.h"

namespace luaspy {
namespace {

std::string read_proc(pid_t pid, std::string_view file) {
  return system::read_file(fmt::format("/proc/{}/{}", pid, file)).value_or("");
}

struct Stat {
  char state = '?';
  bool kernel_thread = false;
  int threads = 0;
  double cpu_seconds = 0;
};

// proc(5): fields 3 state, 9 flags, 14 utime, 15 stime, 20 num_threads.
Stat read_stat(pid_t pid) {
  constexpr unsigned kernel_thread = 0x00200000;  // PF_KTHREAD, include/linux/sched.h
  const std::string text = read_proc(pid, "stat");
  const std::size_t end = text.rfind(')');
  Stat stat;
  if (end == text.npos) return stat;
  std::string_view fields = std::string_view(text).substr(end + 1);
  const std::string_view state = next_word(fields);
  if (!state.empty()) stat.state = state[0];
  skip_words(fields, 9 - 3 - 1);
  stat.kernel_thread = (number<unsigned>(next_word(fields)) & kernel_thread) != 0;
  skip_words(fields, 14 - 9 - 1);
  const auto utime = number<std::uint64_t>(next_word(fields)), stime = number<std::uint64_t>(next_word(fields));
  stat.cpu_seconds = static_cast<double>(utime + stime) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  skip_words(fields, 20 - 15 - 1);
  stat.threads = number<int>(next_word(fields));
  return stat;
}

// Uses schedstat, which counts in ns, while stat counts in ticks of 10 ms. The time of a thread
// that ends in between is lost.
std::map<pid_t, std::uint64_t> thread_times(pid_t pid) {
  std::map<pid_t, std::uint64_t> times;
  for (const pid_t tid : system::numeric_entries(fmt::format("/proc/{}/task", pid))) {
    const std::string text = read_proc(pid, fmt::format("task/{}/schedstat", tid));
    std::string_view rest = text;
    times[tid] = number<std::uint64_t>(next_word(rest));
  }
  return times;
}

// Those of passwd(5): getpwuid(3) would ask services, over sockets. Others are their numbers.
std::map<uid_t, std::string> local_users() {
  std::map<uid_t, std::string> names;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/etc/passwd", "re"), &std::fclose);
  if (file == nullptr) return names;
  while (const passwd* const user = ::fgetpwent(file.get())) names.emplace(user->pw_uid, user->pw_name);
  return names;
}

const std::string& user_name(uid_t uid) {
  static std::map<uid_t, std::string> names = local_users();
  return names.try_emplace(uid, std::to_string(uid)).first->second;
}

uid_t effective_user(pid_t pid) {
  const std::string status = read_proc(pid, "status");
  constexpr std::string_view field = "\nUid:";
  const std::size_t at = status.find(field);
  if (at == status.npos) return 0;
  std::string_view rest = std::string_view(status).substr(at + field.size());
  skip_words(rest, 1);
  return number<uid_t>(next_word(rest));
}

// ns of CPU time that this thread has used.
std::int64_t own_cpu_time() {
  constexpr std::int64_t second = 1'000'000'000;
  timespec time{};
  return ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 ? time.tv_sec * second + time.tv_nsec : 0;
}

// Counts Lua main threads, reading memory in pieces, within bounds: of bytes, and of CPU time, which the
// load of the machine does not change.
void count_states(LuaProcess& process, const AddressSpace& space) {
  constexpr Address piece = 8 << 20, most = 256 << 20;
  constexpr std::int64_t most_time = 500'000'000;  // ns
  const std::int64_t end = own_cpu_time() + most_time;
  const LiveMemory memory(process.pid);
  std::vector<const Lua*> layouts;
  for (const LuaImage& image : process.images)
    layouts.insert(layouts.end(), image.layouts.begin(), image.layouts.end());
  Locator locator(own_machine());
  locator.try_layouts(layouts);
  Address left = most;
  std::byte probe[1];
  bool readable = false;
  process.states = 0;
  process.states_complete = true;
  for (Mapping mapping : contents_of(process.pid, space).searched()) {
    readable = readable || memory.read(mapping.start, probe);
    for (const Address last = mapping.end; mapping.start < last;) {
      if (left < piece || own_cpu_time() > end) {
        process.states_complete = false;
        break;
      }
      mapping.end = std::min(last, mapping.start + piece);
      const Address L = locator.find_main_thread(memory, AddressSpace({mapping}));
      // It is found by its l_G, which is in its first bytes (lstate.h, lj_obj.h).
      constexpr Address past_G = 64;
      const Address next = L != 0 ? std::max(L + past_G, mapping.start + 8) : mapping.end;
      left -= std::min(left, next - mapping.start);
      mapping.start = next;
      if (L == 0) continue;
      ++*process.states;
      for (const Lua* const layout : layouts) {
        Locator one(own_machine());
        one.try_layouts({layout});
        Mapping around = mapping;
        around.start = L, around.end = L + 4096;
        if (one.find_main_thread(memory, AddressSpace({around})) != L) continue;
        const std::string name = layout->name();
        if (std::ranges::find(process.layouts, name) == process.layouts.end()) process.layouts.push_back(name);
        break;
      }
    }
  }
  if (!readable) process.states.reset(), process.states_complete = false;
}

void add_unseen(std::vector<Unseen>& unseen, pid_t pid) {
  std::string reason = "only root may look at other users' processes (sudo luaspy ps)";
  if (::geteuid() == 0 || effective_user(pid) == ::geteuid()) {
    const Error refusal = explain_refusal(pid);
    if (refusal.cause == Cause::no_such_process) return;  // it has just ended
    reason = refusal.text;
    const std::string of_this = fmt::format("process {}: ", pid);  // without the pid, the same reason is one entry for
                                                                   // all processes
    if (const std::size_t at = reason.find(of_this); at != reason.npos) reason.erase(0, at + of_this.size());
  }
  const auto known = std::ranges::find(unseen, reason, &Unseen::reason);
  if (known != unseen.end()) known->pids.push_back(pid);
  else unseen.push_back({reason, {pid}});
}

LuaProcess describe(pid_t pid, const Stat& stat, std::vector<LuaImage> images) {
  LuaProcess process;
  process.pid = pid;
  process.uid = effective_user(pid);
  process.user = user_name(process.uid);
  process.name = read_proc(pid, "comm");
  if (process.name.ends_with('\n')) process.name.pop_back();
  process.command = command_of(pid);
  process.executable = executable_of(pid);
  process.program = program_of(pid);
  process.images = std::move(images);
  process.threads = stat.threads;
  process.cpu_seconds = stat.cpu_seconds;
  std::array<char, EI_NIDENT> ident{};
  const FileDescriptor image = system::open_file(fmt::format("/proc/{}/exe", living_thread(pid)), O_RDONLY);
  process.is_32bit = system::reread(image, ident).size() == ident.size() && ident[EI_CLASS] == ELFCLASS32;
  if (const Result<Process> opened = Process::open(pid); !opened) process.refusal = opened.error().text;
  return process;
}

}  // namespace

bool is_luaspy(pid_t pid) {
  struct stat own {
  }, other{};
  if (pid == ::getpid()) return true;
  return ::stat("/proc/self/exe", &own) == 0 && ::stat(fmt::format("/proc/{}/exe", pid).c_str(), &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

void measure_cpu(std::vector<LuaProcess>& processes) {
  constexpr std::chrono::milliseconds interval(250);
  std::vector<std::map<pid_t, std::uint64_t>> before;
  std::vector<system::Clock::time_point> from;
  for (const LuaProcess& process : processes) {
    from.push_back(system::Clock::now());
    before.push_back(thread_times(process.pid));
  }
  if (!processes.empty()) (void)system::sleep_until(system::Clock::now() + interval);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const std::chrono::duration<double, std::nano> passed = system::Clock::now() - from[i];
    std::uint64_t used = 0;
    for (const auto& [tid, time] : thread_times(processes[i].pid)) {
      const auto then = before[i].find(tid);
      used += time - std::min(time, then == before[i].end() ? 0 : then->second);
    }
    processes[i].cpu_percent = 100 * static_cast<double>(used) / passed.count();
  }
  std::ranges::stable_sort(processes, std::ranges::greater(), &LuaProcess::cpu_percent);
}

LuaProcesses find_lua_processes(bool states) {
  LuaProcesses found;
  KnownImages known;
  for (const pid_t pid : system::numeric_entries("/proc")) {
    const Stat stat = read_stat(pid);
    if (stat.kernel_thread || stat.state == '?' || is_luaspy(pid)) continue;
    const bool first_ended = stat.state == 'Z' || stat.state == 'X';
    const pid_t living = first_ended ? living_thread(pid) : pid;
    if (first_ended && living == pid) continue;
    const std::optional<std::string> maps = system::read_file(fmt::format("/proc/{}/maps", living));
    if (!maps) {
      if (read_stat(pid).state != '?') add_unseen(found.unseen, pid);
      continue;
    }
    const AddressSpace space = AddressSpace::parse(*maps);
    const MappedFiles files(pid, space);
    Detector detector;
    detector.update(space, files, &known, [&](const Mapping& mapping) { return version_of(pid, mapping); });
    if (detector.images().empty()) continue;
    LuaProcess process = describe(pid, stat, detector.images());
    if (states && !process.is_32bit) count_states(process, space);
    found.processes.push_back(std::move(process));
  }
  return found;
}

}  // namespace luaspy
