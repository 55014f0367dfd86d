// faults [ROUNDS | SECONDSs] [FILTER] [--seed N] [--load N] [--list]: the fault campaign. ROUNDS of
// each fault ("40"), or a total number of seconds ("600s"); only faults whose name contains FILTER.
// --load: N processes that only use CPU run at the same time. Prints for each fault the number of
// rounds, and in how many a target was harmed or a profile lost; the status is 0 if in none.

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "doings.h"
#include "kills.h"
#include "profiles.h"
#include "traps.h"

namespace luaspy::faults {
namespace {

constexpr std::array table = {
    Fault{"luaspy killed by -9, at 5 kHz", kill_at_5_khz, 3},
    Fault{"luaspy killed by -9, at 100 Hz", kill_at_100_hz},
    Fault{"luaspy killed by -9, dump of all threads", kill_dump},
    Fault{"luaspy killed by -9, top", kill_top},
    Fault{"luaspy ended by SIGTERM, at 5 kHz", term_at_5_khz},
    Fault{"luaspy ended by SIGINT, at 5 kHz", int_at_5_khz},
    Fault{"luaspy ended by SIGTERM, dump", term_dump},
    Fault{"target exits", ends},
    Fault{"target is killed", is_killed},
    Fault{"target is launched by luaspy and exits", is_launched_and_ends},
    Fault{"target executes itself", does_exec},
    Fault{"target executes itself from another thread", does_exec_in_thread},
    Fault{"target forks, vforks, spawns, clones", does_children},
    Fault{"target makes and ends threads", does_threads},
    Fault{"target queues real-time signals", queues_signals},
    Fault{"target sets timers", sets_timers},
    Fault{"target is stopped and continued", stops_and_continues},
    Fault{"target is stopped and continued in storms", is_stopped_by_storms},
    Fault{"target's parent waits for everything", is_waited_for},
    Fault{"target has a CPU quota", is_throttled, 1, true},
    Fault{"target has changing real-time policies", is_real_time, 1, true},
    Fault{"target is frozen and thawed", is_frozen_and_thawed, 1, true},
    Fault{"target is launched, 100 ms of CPU a second", is_launched_under_quota_of_a_second, 2, true},
    Fault{"target is launched, 10 ms of CPU in 100 ms", is_launched_under_quota, 2, true},
    Fault{"target has a debugger come and go", is_debugged},
    Fault{"target has gdb come and go", is_debugged_by_gdb, 0.5},
    Fault{"target changes its user", changes_user, 1, true},
    Fault{"target becomes non-dumpable", is_not_dumpable},
    Fault{"target maps and unmaps libraries, flushes traces", maps_and_unmaps},
    Fault{"target runs out of memory", has_no_memory},
    Fault{"target has blocked threads", has_blocked_threads},
    Fault{"target blocks all the time", blocks_all_the_time},
    Fault{"target's output, 1 and 5 kHz", has_the_same_output, 3},
    Fault{"alloc: luaspy killed by -9", kill_alloc, 3},
    Fault{"alloc: target is killed", alloc_ends_with_target},
    Fault{"alloc: target handles SIGURG", alloc_urgent},
    Fault{"alloc: target has breakpoints", alloc_breakpoints},
    Fault{"alloc: target forks, vforks, spawns, clones", alloc_children},
    Fault{"alloc: target executes itself", alloc_exec},
    Fault{"alloc: target executes itself from another thread", alloc_exec_in_thread},
    Fault{"alloc: target with many Luas executes itself", alloc_exec_of_many},
    Fault{"alloc: target makes and ends threads", alloc_threads},
    Fault{"alloc: target is stopped and continued", alloc_stops},
    Fault{"alloc: target sets timers", alloc_timers},
    Fault{"alloc: target queues real-time signals", alloc_queue},
    Fault{"alloc: target maps and unmaps libraries", alloc_maps},
    Fault{"alloc: target has blocked threads", alloc_blocked},
    Fault{"alloc: target allocates and sleeps", alloc_sleeps},
    Fault{"profile: SIGTERM, SIGHUP, SIGINT", asked_to_end, 2},
    Fault{"profile: a second SIGINT", asked_twice},
    Fault{"profile: terminal closed", terminal_is_closed},
    Fault{"profile: SIGHUP under nohup", nohup, 0.3},
    Fault{"profile: -9 while raw is written", killed_while_raw},
    Fault{"profile: -9 while --every writes", killed_while_rewriting},
    Fault{"profile: disk full", disk_is_full},
    Fault{"profile: device full", device_is_full},
    Fault{"profile: pipe closed", pipe_is_closed},
    Fault{"profile: path cannot be written", path_cannot_be_written, 0.3},
};

struct Command {
  Campaign::Options options;
  std::string filter;
  int load = 0;
  bool list = false;
};

Command parse(int count, char** words) {
  Command command;
  command.options.seed = std::random_device{}();
  command.options.rounds = 3;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--list") command.list = true;
    else if (word == "--seed" && i + 1 < count) command.options.seed = std::strtoull(words[++i], nullptr, 10);
    else if (word == "--load" && i + 1 < count) command.load = std::atoi(words[++i]);
    else if (word.find_first_not_of("0123456789.s") != word.npos) command.filter = word;
    else if (word.ends_with('s')) command.options.seconds = std::strtod(word.c_str(), nullptr);
    else command.options.rounds = std::atoi(word.c_str());
  }
  return command;
}

bool is_chosen(const Fault& fault, const std::string& filter) {
  return std::string_view(fault.name).find(filter) != std::string_view::npos && (!fault.needs_root || ::geteuid() == 0);
}

int run(Command command) {
  double shares = 0;
  for (const Fault& fault : table) shares += is_chosen(fault, command.filter) ? fault.share : 0;
  command.options.seconds /= shares;
  fmt::print("faults --seed {} --load {}, as user {}\n{:<52}{:>7}{:>8}{:>6}\n", command.options.seed, command.load,
             ::geteuid(), "fault", "rounds", "harmed", "lost");
  std::vector<std::unique_ptr<Child>> load;
  for (int i = 0; i < command.load; ++i)
    load.push_back(std::make_unique<Child>(Words{"/bin/sh", "-c", "while :; do :; done"}));
  Campaign campaign(command.options);
  Count all;
  for (const Fault& fault : table) {
    if (!is_chosen(fault, command.filter)) continue;
    campaign.begin(fault.name, fault.share);
    fault.run(campaign);
    const Count& count = campaign.count();
    fmt::print("{:<52}{:>7}{:>8}{:>6}  {}\n", fault.name, count.rounds, count.harmed, count.lost, campaign.remarks());
    std::fflush(stdout);
    all.rounds += count.rounds, all.harmed += count.harmed, all.lost += count.lost;
  }
  fmt::print("{:<52}{:>7}{:>8}{:>6}\n", "all", all.rounds, all.harmed, all.lost);
  return all.rounds > 0 && all.harmed == 0 && all.lost == 0 ? 0 : 1;
}

}  // namespace
}  // namespace luaspy::faults

int main(int count, char** words) {
  const luaspy::faults::Command command = luaspy::faults::parse(count, words);
  if (command.list) {
    for (const luaspy::faults::Fault& fault : luaspy::faults::table) fmt::print("{}\n", fault.name);
    return 0;
  }
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP})
    std::signal(signal, SIG_DFL);  // a shell's background job ignores some
  luaspy::tests::adopt_orphans();
  return luaspy::faults::run(command);
}
