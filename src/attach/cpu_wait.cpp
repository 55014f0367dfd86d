#include "attach/cpu_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/words.h"

namespace luaspy {
namespace {

// Removes what comes before `separator` from `text`, and the separator.
std::string_view next_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

bool lists(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    if (next_part(list, ',') == item) return true;
  }
  return false;
}

// proc(5), /proc/PID/status.
std::uint64_t sleeps_of(pid_t pid, pid_t tid) {
  constexpr std::string_view field = "\nvoluntary_ctxt_switches:";
  const std::string status = system::read_file(fmt::format("/proc/{}/task/{}/status", pid, tid)).value_or("");
  const std::size_t at = status.find(field);
  if (at == status.npos) return 0;
  std::string_view rest = std::string_view(status).substr(at + field.size());
  return number<std::uint64_t>(next_word(rest));
}

// cgroups(7): lines "number:controllers:path"; version 2 has the number 0 and no controllers.
// nullopt if there is none.
std::optional<std::string_view> cgroup_path(std::string_view cgroups, bool version_2) {
  while (!cgroups.empty()) {
    std::string_view path = next_line(cgroups);
    const std::string_view number = next_part(path, ':'), controllers = next_part(path, ':');
    if (version_2 ? number == "0" && controllers.empty() : lists(controllers, "cpu")) return path;
  }
  return std::nullopt;
}

struct Mount {
  std::string_view root, point;  // the cgroup that is visible at the folder `point`
};

// proc(5), /proc/PID/mountinfo: "36 35 98:0 /root /point rw,noatime master:1 - type source
// super,options".
std::optional<Mount> cgroup_mount(std::string_view mounts, bool version_2) {
  while (!mounts.empty()) {
    std::string_view line = next_line(mounts);
    skip_words(line, 3);
    const std::string_view root = next_word(line), point = next_word(line);
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::string_view rest = line.substr(dash + 3);
    const std::string_view type = next_word(rest);
    skip_words(rest, 1);
    if (version_2 ? type == "cgroup2" : type == "cgroup" && lists(next_word(rest), "cpu")) return Mount{root, point};
  }
  return std::nullopt;
}

// A cgroup outside the root of the mount, or outside luaspy's cgroup namespace (its path then
// starts with "/.."), is not visible.
std::optional<std::string_view> below(std::string_view path, std::string_view root) {
  if (!path.starts_with('/') || path.find("/..") != path.npos) return std::nullopt;
  if (root == "/") return path == "/" ? "" : path;
  if (!path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  if (!path.empty() && path.front() != '/') return std::nullopt;
  return path;
}

// CPUs of the kernel parameter nohz_full= have no regular ticks; the time of a thread that runs
// alone there is counted once a second (sched_tick_remote() in kernel/sched/core.c).
bool has_tickless_cpus() {
  const std::string list = system::read_file("/sys/devices/system/cpu/nohz_full").value_or("");
  return !list.empty() && list.front() >= '0' && list.front() <= '9';
}

std::vector<std::int64_t> throttled_of(const std::vector<std::string>& files) {
  std::vector<std::int64_t> all;
  for (const std::string& file : files) all.push_back(throttled_in(system::read_file(file).value_or("")));
  return all;
}

}  // namespace

// schedstat does not include a wait that is still going on, and may not include any time that a
// cgroup throttled the thread. So a thread that is neither on a CPU nor asleep counts as waiting.
std::optional<CpuWait> cpu_wait(const CpuReading& from, const CpuReading& to, bool counted_late) {
  constexpr double had_enough = 0.9;
  if (to.letter != 'R' || from.schedule.runs == 0 || to.schedule.runs < from.schedule.runs) return std::nullopt;
  if (counted_late && to.schedule.runs == from.schedule.runs) return std::nullopt;
  CpuWait wait;
  wait.window = system::to_ns(to.at - from.at);
  if (wait.window <= 0) return std::nullopt;
  wait.on_cpu = std::clamp<std::int64_t>(to.schedule.on_cpu - from.schedule.on_cpu, 0, wait.window);
  const auto enough = static_cast<std::int64_t>(had_enough * static_cast<double>(wait.window));
  if (wait.on_cpu >= enough) return std::nullopt;
  const std::int64_t rest = wait.window - wait.on_cpu;
  if (to.sleeps != from.sleeps) {
    wait.waited = std::clamp<std::int64_t>(to.schedule.waited_for_cpu - from.schedule.waited_for_cpu, 0, rest);
    if (*wait.waited < wait.window - enough) return std::nullopt;
  }
  for (std::size_t i = 0; i < std::min(from.throttled.size(), to.throttled.size()); ++i) {
    if (from.throttled[i] >= 0) wait.throttled = std::max(wait.throttled, to.throttled[i] - from.throttled[i]);
  }
  wait.throttled = std::min(wait.throttled, rest);  // the kernel adds up the times of all CPUs
  return wait;
}

std::string cpu_wait_text(const CpuWait& wait) {
  const double window = static_cast<double>(wait.window) / 1e9;
  const auto percent = [&](std::int64_t part) {
    return wait.window > 0 ? 100 * static_cast<double>(part) / static_cast<double>(wait.window) : 0;
  };
  std::string text = fmt::format("wants to run; had a CPU {:.0f} % of the last {}", percent(wait.on_cpu),
                                 std::abs(window - 1) < 0.05 ? "second" : fmt::format("{:.1f} s", window));
  if (wait.waited) text += fmt::format(", waited for one {:.0f} %", percent(*wait.waited));
  constexpr std::int64_t least_throttled = 50'000'000;  // what is printed as 0.1 s
  if (wait.throttled >= least_throttled)
    text += fmt::format("; throttled by its cgroup for {:.1f} s", static_cast<double>(wait.throttled) / 1e9);
  return text;
}

// A machine may have both cgroup versions mounted, with the cpu controller in one of them: in
// version 1 if any cgroup has it there.
std::vector<std::string> cpu_stat_files(std::string_view cgroups, std::string_view mounts) {
  constexpr std::size_t most = 64;
  const bool version_2 = !cgroup_path(cgroups, false);
  const std::optional<std::string_view> path = cgroup_path(cgroups, version_2);
  const std::optional<Mount> mount = cgroup_mount(mounts, version_2);
  if (!path || !mount) return {};
  std::optional<std::string_view> at = below(*path, mount->root);
  std::vector<std::string> files;
  while (at && files.size() < most) {
    files.push_back(fmt::format("{}{}/cpu.stat", mount->point, *at));
    if (at->empty()) break;
    at = at->substr(0, at->rfind('/'));
  }
  return files;
}

// Documentation/scheduler/sched-bwc.rst: throttled_time in ns; cgroup-v2.rst: throttled_usec.
std::int64_t throttled_in(std::string_view cpu_stat) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  while (!cpu_stat.empty()) {
    std::string_view line = next_line(cpu_stat);
    const std::string_view field = next_word(line);
    if (field != "throttled_time" && field != "throttled_usec") continue;
    const auto value = number<std::uint64_t>(next_word(line));
    const std::uint64_t unit = field == "throttled_time" ? 1 : 1000;
    return value > most / unit ? -1 : static_cast<std::int64_t>(value * unit);
  }
  return -1;
}

// luaspy itself may have to wait for a CPU between its readings. The clock is read at the point
// where that makes the window shorter, so that the thread's share is never too small.
CpuWatch::CpuWatch(pid_t pid, std::shared_ptr<Thread> thread)
    : pid_(pid), thread_(std::move(thread)), counted_late_(has_tickless_cpus()) {
  const std::string cgroups = system::read_file(fmt::format("/proc/{}/task/{}/cgroup", pid_, thread_->tid()))
                                  .value_or("");
  stat_files_ = cpu_stat_files(cgroups, system::read_file("/proc/self/mountinfo").value_or(""));
  begin_.throttled = throttled_of(stat_files_);
  begin_.sleeps = sleeps_of(pid_, thread_->tid());
  begin_.schedule = thread_->schedule();
  begin_.at = system::Clock::now();
}

std::optional<CpuWait> CpuWatch::so_far() const {
  CpuReading now;
  now.at = system::Clock::now();
  now.schedule = thread_->schedule();
  now.letter = thread_->state_letter();
  now.sleeps = sleeps_of(pid_, thread_->tid());
  now.throttled = throttled_of(stat_files_);
  return cpu_wait(begin_, now, counted_late_);
}

}  // namespace luaspy
