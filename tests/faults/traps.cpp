// Faults of luaspy alloc, which traces threads all the time and traps their calls.

#include "traps.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>

#include "support/luaspy.h"
#include "victim.h"

namespace luaspy::faults {
namespace {

Words alloc(const std::string& pid, double seconds) {
  return {"alloc", "--max-cost", "50",    "-d", fmt::format("{:.3f}", seconds), "-f", "folded",
          "-o",    "profile",    "--pid", pid};
}

// How many samples its summary has: 0 if there is no summary.
int samples_in(const std::string& errors) {
  const std::size_t end = errors.find(" samples: by chance");
  if (end == std::string::npos) return 0;
  const std::size_t begin = errors.find_last_not_of("0123456789", end - 1) + 1;
  return std::atoi(errors.c_str() + begin);
}

// Waits until luaspy's own threads stand still and the target is held at a trapped call.
bool is_held(const Luaspy& luaspy, const Victim& victim) {
  constexpr double long_enough_s = 0.003;
  luaspy.process().signal(SIGSTOP);
  if (!luaspy.await_state('T')) return false;
  const double end = now_s() + long_enough_s;
  do {
    if (victim.held().stopped > 0) return true;
  } while (now_s() < end);
  return false;
}

// A trap is armed if the target stops although luaspy stands still. Where it is not armed, luaspy
// goes on, and another instant is tried.
bool await_armed(Campaign& campaign, const Luaspy& luaspy, const Victim& victim, int& tries) {
  constexpr int most_tries = 40;
  for (int i = 0; i < most_tries && luaspy.process().alive(); ++i) {
    ++tries;
    if (is_held(luaspy, victim)) return true;
    luaspy.process().signal(SIGCONT);
    sleep_ms(campaign.random(0, 10));
  }
  return false;
}

void alloc_while(Campaign& campaign, const std::string& mode) {
  Victims victims(campaign, mode);
  int samples = 0;
  while (campaign.next()) {
    Victim& victim = victims.next();
    Folder folder;
    Luaspy luaspy(alloc(victim.pid(), campaign.random(0.2, 0.6)), folder);
    const std::optional<int> status = luaspy.process().wait(60);
    if (!status) campaign.harmed("luaspy does not end: " + luaspy.where());
    else if (!is_answer(*status)) campaign.lost(fmt::format("luaspy's status is {}: {}", *status, luaspy.errors()));
    samples += samples_in(luaspy.errors());
    victims.check();
  }
  campaign.remark(fmt::format("{} samples, {} {}", samples, victims.events(), mode));
}

}  // namespace

// Half of the kills are at random instants, half while a trap is armed.
void kill_alloc(Campaign& campaign) {
  Victims victims(campaign, "busy");
  int armed = 0, tries = 0;
  while (campaign.next()) {
    Victim& victim = victims.next();
    Folder folder;
    Luaspy luaspy(alloc(victim.pid(), 60), folder);
    if (campaign.chance(0.2)) {
      sleep_ms(campaign.random(0, 20));
    } else {
      (void)luaspy.await_recording();
      sleep_ms(campaign.random(0, 150));
      if (campaign.chance(0.7)) armed += await_armed(campaign, luaspy, victim, tries);
    }
    luaspy.process().signal(SIGKILL);
    const std::optional<int> status = luaspy.process().wait(30);
    if (!status) campaign.harmed("luaspy does not end after -9: " + luaspy.where());
    else if (*status != 128 + SIGKILL) campaign.lost(fmt::format("it ended before, {}: {}", *status, luaspy.errors()));
    victims.check();
  }
  campaign.remark(fmt::format("{} killed while armed, as {} of {} instants were", armed, armed, tries));
}

void alloc_ends_with_target(Campaign& campaign) {
  while (campaign.next()) {
    Victim victim(campaign.chance(0.5) ? Lua::puc : Lua::luajit, "busy");
    Folder folder;
    Luaspy luaspy(alloc(victim.pid(), 20), folder);
    (void)luaspy.await_recording();
    sleep_ms(campaign.random(0, 200));
    const int signal = campaign.chance(0.5) ? SIGKILL : SIGTERM;
    victim.process().signal(signal);
    const std::optional<int> ended = victim.process().wait(10), status = luaspy.process().wait(30);
    if (ended != 128 + signal) campaign.harmed("its parent is not told how it has ended");
    if (!status) campaign.harmed("luaspy does not end with its target: " + luaspy.where());
    else if (!is_answer(*status)) campaign.lost(fmt::format("luaspy's status is {}: {}", *status, luaspy.errors()));
  }
}

void alloc_urgent(Campaign& campaign) { alloc_while(campaign, "urgent"); }
void alloc_breakpoints(Campaign& campaign) { alloc_while(campaign, "breakpoints"); }
void alloc_children(Campaign& campaign) { alloc_while(campaign, "children"); }
void alloc_exec(Campaign& campaign) { alloc_while(campaign, "exec"); }
void alloc_exec_in_thread(Campaign& campaign) { alloc_while(campaign, "exec_thread"); }
void alloc_exec_of_many(Campaign& campaign) { alloc_while(campaign, "exec_many"); }
void alloc_threads(Campaign& campaign) { alloc_while(campaign, "threads"); }
void alloc_stops(Campaign& campaign) { alloc_while(campaign, "stops"); }
void alloc_timers(Campaign& campaign) { alloc_while(campaign, "timers"); }
void alloc_queue(Campaign& campaign) { alloc_while(campaign, "queue"); }
void alloc_maps(Campaign& campaign) { alloc_while(campaign, "maps"); }
void alloc_blocked(Campaign& campaign) { alloc_while(campaign, "blocked"); }

// The trap itself ends no system call. A look for Lua at a thread that falls asleep at that moment may,
// as in "target blocks all the time".
void alloc_sleeps(Campaign& campaign) {
  constexpr int tolerated_a_round = 1, unlucky = 2;
  Victim victim(Lua::puc, "sleeps");
  while (campaign.next()) {
    Folder folder;
    Luaspy luaspy(alloc(victim.pid(), 0.4), folder);
    const std::optional<int> status = luaspy.process().wait(30);
    if (!status) campaign.harmed("luaspy does not end: " + luaspy.where());
    else if (!is_answer(*status)) campaign.lost(fmt::format("luaspy's status is {}: {}", *status, luaspy.errors()));
    if (const std::optional<std::string> why = victim.harm()) campaign.harmed(*why);
  }
  const std::uint64_t interrupted = victim.board().interrupted;
  campaign.remark(fmt::format("EINTR {} of {} calls", interrupted, victim.board().calls));
  if (interrupted > static_cast<std::uint64_t>(unlucky + tolerated_a_round * campaign.count().rounds))
    campaign.harmed("too many system calls end with EINTR");
}

}  // namespace luaspy::faults
