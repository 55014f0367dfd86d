// Faults: targets that have a small share of a CPU, or none for a while: quotas, freezers, storms
// of SIGSTOP and SIGCONT. And targets that leave nobody else any: real-time policies.

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>

#include "doings.h"
#include "group.h"
#include "support/luaspy.h"
#include "victim.h"

namespace luaspy::faults {
namespace {

// Campaigns also run where no group can be created: this is reported, and is not an error of
// luaspy.
bool is_usable(Campaign& campaign, const Group& group) {
  if (group.usable()) return true;
  while (campaign.next()) {
  }
  campaign.remark("NOT TRIED: no such control group can be made here");
  return false;
}

void check_answer(Campaign& campaign, Luaspy& luaspy) {
  constexpr int no_samples = 11;
  const std::optional<int> status = luaspy.process().wait(60);
  if (!status) campaign.harmed("luaspy does not end: " + luaspy.where());
  else if (*status != 0 && *status != no_samples)
    campaign.lost(fmt::format("luaspy's status is {}: {}", *status, luaspy.errors()));
}

Words record(const Campaign& campaign, const std::string& pid, double seconds) {
  const char* const rates[] = {"100", "1000", "5000"};
  Words words = {"record",
                 "-r",
                 rates[campaign.round() % 3],
                 "--max-stopped",
                 "100",
                 "-d",
                 fmt::format("{:.3f}", seconds),
                 "-f",
                 "folded",
                 "-o",
                 "profile",
                 "--pid",
                 pid};
  if (campaign.round() % 2 == 0) words.insert(words.begin() + 1, "--idle");
  return words;
}

// Calls `disturb`, which must leave the victim able to continue, again and again while luaspy looks
// at it.
void record_while(Campaign& campaign, const std::string& what, const std::function<void(Victim&)>& prepare,
                  const std::function<void(Victim&)>& disturb) {
  Victims victims(campaign, "busy");
  int times = 0;
  while (campaign.next()) {
    Victim& victim = victims.next();
    prepare(victim);
    Folder folder;
    Luaspy luaspy(record(campaign, victim.pid(), campaign.random(0.1, 0.4)), folder);
    const double end = now_s() + 20;
    while (luaspy.process().alive() && now_s() < end) disturb(victim), ++times;
    check_answer(campaign, luaspy);
    victims.check();
  }
  campaign.remark(fmt::format("{} {}", times, what));
}

// The pid of the command that luaspy has launched; 0 if there is none yet.
pid_t command_of(const Luaspy& luaspy) {
  const pid_t parent = luaspy.process().pid();
  std::istringstream children(read_file(fmt::format("/proc/{}/task/{}/children", parent, parent)));
  pid_t child = 0;
  children >> child;
  return child;
}

std::string states_of(pid_t pid) {
  std::string text;
  std::istringstream status(read_file(fmt::format("/proc/{}/status", pid)));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("State:") || line.starts_with("TracerPid:")) text += (text.empty() ? "" : ", ") + line;
  }
  return text;
}

// One command for all rounds, a few seconds each, because what freezes it is rare. It must progress
// as much as its quota allows; luaspy is under the same quota, as in a container.
void launched_under_quota(Campaign& campaign, const std::string& rate, int us, int period_us) {
  constexpr double round_s = 2, patience_s = 8, start_s = 20;  // start_s: for its first result
  Group group(Group::Controller::cpu);
  if (!is_usable(campaign, group)) return;
  group.set_quota(us, period_us);
  Folder folder;
  const Board* const board = map_board(folder.path("board"));
  Luaspy luaspy({"record", "-r", rate, "-f", "folded", "-o", "profile", "--", victim_program(Lua::puc),
                 folder.path("board"), "busy"},
                folder, {.output = folder.path("said"), .group = group.procs()});
  const double begin = now_s();
  while (command_of(luaspy) == 0) {
    if (now_s() - begin > 60 || !luaspy.process().alive()) give_up("no victim is launched: " + luaspy.errors());
    sleep_ms(1);
  }
  const pid_t command = command_of(luaspy);
  const auto progress = [&] { return __atomic_load_n(&board->progress, __ATOMIC_SEQ_CST); };
  double longest_s = 0, moved_s = now_s();
  const double limited_s = now_s();
  std::uint64_t last = progress();
  bool frozen = false;
  while (campaign.next()) {
    const double end = now_s() + round_s;
    while (!frozen && (now_s() < end || now_s() - moved_s > round_s)) {
      sleep_ms(2);
      if (const std::uint64_t now = progress(); now != last) last = now, moved_s = now_s();
      if (last != 0) longest_s = std::max(longest_s, now_s() - moved_s);
      frozen = now_s() - moved_s > (last == 0 ? start_s : patience_s);
    }
    if (!frozen) continue;
    campaign.harmed(fmt::format("the command stands still for ever, since {:.1f} s after it got its quota: {}",
                                moved_s - limited_s, states_of(command)));
    break;
  }
  while (campaign.next() && frozen) {
  }
  if (board->wrong != 0) campaign.harmed(board->what);
  campaign.remark(fmt::format("{:.0f} s, it stood still for {:.2f} s at most", now_s() - limited_s, longest_s));
  ::kill(command, SIGTERM);
  const std::optional<int> status = luaspy.process().wait(20);
  if (!status)
    campaign.harmed(fmt::format("luaspy does not end with its command: {}{}", states_of(command), luaspy.where()));
  else if (!frozen && *status != 128 + SIGTERM)
    campaign.lost(fmt::format("luaspy's status is {}: {}", *status, luaspy.errors()));
  // With so small a share of a CPU for both, all ticks may be late and left out: this is reported.
  else if (!frozen && luaspy.profile().empty() && luaspy.errors().find("late ticks") == std::string::npos)
    campaign.lost("no profile: " + luaspy.errors());
  if (!status) ::kill(command, SIGKILL);
}

}  // namespace

void is_throttled(Campaign& campaign) {
  Group group(Group::Controller::cpu);
  if (!is_usable(campaign, group)) return;
  const auto prepare = [&](Victim& victim) {
    const int period_us = campaign.chance(0.5) ? 100000 : 20000;
    group.set_quota(static_cast<int>(period_us * campaign.random(0.1, 0.6)), period_us);
    group.add(victim.process().pid());
  };
  record_while(campaign, "looks at it", prepare, [](Victim&) { sleep_ms(5); });
}

void is_frozen_and_thawed(Campaign& campaign) {
  Group group(Group::Controller::freezer);
  if (!is_usable(campaign, group)) return;
  const auto freeze = [&](Victim&) {
    group.freeze(true);
    sleep_ms(campaign.random(0, 30));
    group.freeze(false);
    sleep_ms(campaign.random(0, 30));
  };
  record_while(
      campaign, "times frozen", [&](Victim& victim) { group.add(victim.process().pid()); }, freeze);
}

void is_stopped_by_storms(Campaign& campaign) {
  const auto stop = [&](Victim& victim) {
    const int storms = static_cast<int>(campaign.random(1, 20));
    for (int i = 0; i < storms; ++i) {
      victim.process().signal(SIGSTOP);
      if (campaign.chance(0.5)) sleep_ms(campaign.random(0, 2));
      victim.process().signal(SIGCONT);
      if (campaign.chance(0.5)) sleep_ms(campaign.random(0, 2));
    }
    sleep_ms(campaign.random(0, 10));
  };
  record_while(
      campaign, "storms", [](Victim&) {}, stop);
}

// It stays on one CPU, and the campaign has others.
void is_real_time(Campaign& campaign) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  sched_getaffinity(0, sizeof usable, &usable);
  if (::geteuid() != 0 || CPU_COUNT(&usable) < 2) {
    while (campaign.next()) {
    }
    campaign.remark("NOT TRIED: it needs root and two CPUs");
    return;
  }
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &usable)) --last;
  const auto for_each_thread = [](const Victim& victim, const std::function<void(pid_t)>& act) {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", victim.pid()), gone))
      act(static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10)));
  };
  const auto hold = [&](Victim& victim) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    for_each_thread(victim, [&](pid_t tid) { sched_setaffinity(tid, sizeof one, &one); });
  };
  const auto change = [&](Victim& victim) {
    const bool ordinary = campaign.chance(0.3), in_turns = campaign.chance(0.3);
    const sched_param priority{ordinary ? 0 : static_cast<int>(campaign.random(1, 99.9))};
    const int policy = ordinary ? SCHED_OTHER : in_turns ? SCHED_RR : SCHED_FIFO;
    for_each_thread(victim, [&](pid_t tid) { sched_setscheduler(tid, policy, &priority); });
    sleep_ms(campaign.random(1, 60));
  };
  record_while(campaign, "policies", hold, change);
}

void is_launched_under_quota_of_a_second(Campaign& campaign) { launched_under_quota(campaign, "20", 100000, 1000000); }
void is_launched_under_quota(Campaign& campaign) { launched_under_quota(campaign, "100", 10000, 100000); }

}  // namespace luaspy::faults
