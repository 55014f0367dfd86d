// Faults: debuggers on the same target, and system calls that a stop could end.

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <filesystem>
#include <sstream>

#include "doings.h"
#include "support/luaspy.h"
#include "victim.h"

namespace luaspy::faults {
namespace {

// A debugger: attaches to a thread, looks at it for a while, and detaches. False if it was refused
// because another tracer had the thread.
bool debug(pid_t tid, bool by_attach, double ms) {
  if (::ptrace(by_attach ? PTRACE_ATTACH : PTRACE_SEIZE, tid, nullptr, nullptr) != 0) return false;
  if (!by_attach) ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  int status = 0;
  int signal = 0;
  while (::waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status) && by_attach && WSTOPSIG(status) != SIGSTOP) {
    ::ptrace(PTRACE_CONT, tid, nullptr, static_cast<long>(WSTOPSIG(status)));
  }
  if (!by_attach && WIFSTOPPED(status) && status >> 16 == 0) signal = WSTOPSIG(status);
  sleep_ms(ms);
  ::ptrace(PTRACE_DETACH, tid, nullptr, static_cast<long>(signal));
  return true;
}

std::vector<pid_t> threads_of(const std::string& pid) {
  std::vector<pid_t> tids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + pid + "/task"))
    tids.push_back(std::stoi(task.path().filename()));
  return tids;
}

Words record(const std::string& pid, const std::string& seconds) {
  return {"record", "-r", "5000", "--max-stopped", "100", "-d", seconds, "-f", "folded", "-o", "profile", "--pid", pid};
}

void check_answer(Campaign& campaign, Luaspy& luaspy) {
  constexpr int already_traced = 9, no_samples = 11;
  const std::optional<int> status = luaspy.process().wait(30);
  if (!status) campaign.harmed("luaspy does not end");
  else if (*status != 0 && *status != already_traced && *status != no_samples)
    campaign.lost(fmt::format("luaspy's status is {}: {}", *status, luaspy.errors()));
}

std::int64_t samples_in(const std::string& folded, const std::string& root) {
  std::int64_t samples = 0;
  std::istringstream lines(folded);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(root) != std::string::npos) samples += std::stoll(line.substr(line.rfind(' ') + 1));
  }
  return samples;
}

}  // namespace

void is_debugged(Campaign& campaign) {
  Victims victims(campaign, "busy");
  int taken = 0, refused = 0;
  while (campaign.next()) {
    Victim& victim = victims.next();
    Folder folder;
    Luaspy luaspy(record(victim.pid(), "0.15"), folder);
    const double end = now_s() + campaign.random(0.02, 0.15);
    while (now_s() < end) {
      for (const pid_t tid : threads_of(victim.pid()))
        (debug(tid, campaign.chance(0.5), campaign.random(0, 2)) ? taken : refused) += 1;
      sleep_ms(campaign.random(0, 5));
    }
    check_answer(campaign, luaspy);
    victims.check();
  }
  campaign.remark(fmt::format("debugger took a thread {} times, was refused {} times", taken, refused));
}

void is_debugged_by_gdb(Campaign& campaign) {
  Victims victims(campaign, "busy");
  int seen = 0, rounds = 0;
  while (campaign.next()) {
    Victim& victim = victims.next();
    Folder folder;
    Luaspy luaspy(record(victim.pid(), "2"), folder);
    sleep_ms(campaign.random(0, 60));
    Child gdb({"gdb", "-nx", "-batch", "-p", victim.pid(), "-ex", "bt 3", "-ex", "detach"},
              {.output = folder.path("gdb"), .errors = folder.path("gdb")});
    const std::optional<int> status = gdb.wait(60);
    if (!status) campaign.harmed("gdb does not end");
    else if (*status == 127) campaign.lost("there is no gdb to try it with");
    const std::string said = read_file(folder.path("gdb"));
    seen += said.find("#0 ") != std::string::npos, ++rounds;
    luaspy.process().signal(SIGINT);
    check_answer(campaign, luaspy);
    victims.check();
  }
  campaign.remark(fmt::format("gdb was let in {} of {} times", seen, rounds));
}

void has_blocked_threads(Campaign& campaign) {
  Victims victims(campaign, "blocked");
  std::int64_t looks = 0;
  while (campaign.next()) {
    Victim& victim = victims.next();
    Folder folder;
    const bool dump = campaign.round() % 3 == 0;
    Luaspy luaspy(
        dump ? Words{"dump", "--locals", "--coroutines", "--count", "5", "--interval", "0.005", "--pid", victim.pid()}
             : Words{"record", "-r", "5000", "--max-stopped", "100", "--idle", "-d", "0.2", "-f", "folded", "-o",
                     "profile", "--pid", victim.pid()},
        folder);
    const std::optional<int> status = luaspy.process().wait(30);
    if (status != 0) campaign.lost("luaspy says: " + luaspy.errors());
    looks += samples_in(luaspy.profile(), "[epoll_wait]") + samples_in(luaspy.profile(), "[recvfrom]") +
             samples_in(luaspy.profile(), "[rt_sigtimedwait]");
    victims.check();  // a call that ended early is a wrong result
  }
  campaign.remark(fmt::format("0 EINTR may be, {} looks at blocked threads", looks));
}

void blocks_all_the_time(Campaign& campaign) {
  Victim victim(Lua::puc, "short");
  std::int64_t stops = 0;
  while (campaign.next()) {
    Folder folder;
    Luaspy luaspy({"record", "-r", "5000", "--max-stopped", "100", "--threads", "--mode", "native", "-d", "0.3", "-f",
                   "folded", "-o", "profile", "--pid", victim.pid()},
                  folder);
    const std::optional<int> status = luaspy.process().wait(30);
    if (status != 0) campaign.lost("luaspy says: " + luaspy.errors());
    stops += samples_in(luaspy.profile(), "short");
    if (const std::optional<std::string> why = victim.harm()) campaign.harmed(*why);
  }
  const auto interrupted = static_cast<double>(victim.board().interrupted),
             calls = static_cast<double>(victim.board().calls);
  const double percent = stops == 0 ? 0 : 100 * interrupted / static_cast<double>(stops);
  campaign.remark(fmt::format("EINTR {} of {} calls, {} stops: {:.2f} % of stops", interrupted, calls, stops, percent));
  constexpr double tolerated_percent = 3, unlucky = 5;
  if (interrupted > unlucky && percent > tolerated_percent) campaign.harmed("too many system calls end with EINTR");
}

}  // namespace luaspy::faults
