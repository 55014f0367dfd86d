// Faults: what a target does, or what is done to it, while it is profiled.

#include "doings.h"

#include <fmt/format.h>
#include <signal.h>

#include <filesystem>

#include "support/luaspy.h"
#include "victim.h"

namespace luaspy::faults {
namespace {

// The ways of profiling are used in turn.
Words way(const Campaign& campaign, const std::string& pid, double seconds) {
  const std::string duration = fmt::format("{:.3f}", seconds);
  switch (campaign.round() % 5) {
    case 0:
      return {"record", "-r", "1000", "-d", duration, "-f", "folded", "-o", "profile", "--pid", pid};
    case 1:
      return {"record", "-r",     "5000", "--max-stopped", "100",   "-d", duration,
              "-f",     "folded", "-o",   "profile",       "--pid", pid};
    case 2:
      return {"record", "-s", "-r",  "5000", "--max-stopped", "100",   "-d",
              duration, "-f", "raw", "-o",   "profile",       "--pid", pid};
    case 3:
      return {"record", "--idle", "-r",     "2000", "--max-stopped", "100",   "-d",
              duration, "-f",     "folded", "-o",   "profile",       "--pid", pid};
    default:
      return {"dump", "--locals", "--coroutines", "--count", "4", "--interval", "0.02", "--pid", pid};
  }
}

// `user`: the user who runs luaspy in every other round; 0: the one who runs the campaign.
void profile_while(Campaign& campaign, const std::string& mode, uid_t user = 0) {
  constexpr double longest_s = 0.2;
  Victims victims(campaign, mode);
  while (campaign.next()) {
    Victim& victim = victims.next();
    Folder folder;
    if (user != 0) std::filesystem::permissions(folder.path(), std::filesystem::perms(0777));
    Luaspy luaspy(way(campaign, victim.pid(), campaign.random(0.03, longest_s)), folder,
                  {.user = campaign.round() % 2 == 0 ? user : 0});
    const std::optional<int> status = luaspy.process().wait(60);
    if (!status) campaign.harmed("luaspy does not end");
    else if (!is_answer(*status)) campaign.lost(fmt::format("luaspy's status is {}: {}", *status, luaspy.errors()));
    victims.check();
  }
  campaign.remark(fmt::format("{} {}", victims.events(), mode));
}

// A target ends: its parent must receive its status at once.
void check_end(Campaign& campaign, Victim& victim, int right) {
  const double begin = now_s();
  const std::optional<int> status = victim.process().wait(10);
  if (!status) campaign.harmed("its parent is not told that it has ended");
  else if (*status != right) campaign.harmed(fmt::format("its status is {}, not {}", *status, right));
  else if (victim.board().wrong != 0) campaign.harmed(victim.board().what);
  else if (now_s() - begin > 5) campaign.harmed("its parent is told late that it has ended");
}

void check_profile(Campaign& campaign, Luaspy& luaspy) {
  const std::optional<int> status = luaspy.process().wait(30);
  if (!status) campaign.harmed("luaspy does not end with its target");
  else if (!is_answer(*status)) campaign.lost(fmt::format("luaspy's status is {}: {}", *status, luaspy.errors()));
  else if (*status == 0 && luaspy.profile().empty())
    campaign.lost("luaspy's status is 0, and it wrote nothing: " + luaspy.errors());
}

}  // namespace

void does_threads(Campaign& campaign) { profile_while(campaign, "threads"); }
void does_children(Campaign& campaign) { profile_while(campaign, "children"); }
void does_exec(Campaign& campaign) { profile_while(campaign, "exec"); }
void does_exec_in_thread(Campaign& campaign) { profile_while(campaign, "exec_thread"); }
void queues_signals(Campaign& campaign) { profile_while(campaign, "queue"); }
void sets_timers(Campaign& campaign) { profile_while(campaign, "timers"); }
void stops_and_continues(Campaign& campaign) { profile_while(campaign, "stops"); }
void is_waited_for(Campaign& campaign) { profile_while(campaign, "waited"); }
void maps_and_unmaps(Campaign& campaign) { profile_while(campaign, "maps"); }
void has_no_memory(Campaign& campaign) { profile_while(campaign, "memory"); }
void is_not_dumpable(Campaign& campaign) { profile_while(campaign, "dumpable"); }

void changes_user(Campaign& campaign) { profile_while(campaign, "user", 65534); }

void ends(Campaign& campaign) {
  while (campaign.next()) {
    const std::string works = std::to_string(static_cast<int>(campaign.random(1, 60)));
    Victim victim(campaign.chance(0.5) ? Lua::puc : Lua::luajit, "ends", works);
    Folder folder;
    Luaspy luaspy({"record", "-r", "5000", "--max-stopped", "100", "-d", "20", "-f", "folded", "-o", "profile", "--pid",
                   victim.pid()},
                  folder);
    check_end(campaign, victim, 37);
    check_profile(campaign, luaspy);
  }
}

void is_killed(Campaign& campaign) {
  while (campaign.next()) {
    Victim victim(campaign.chance(0.5) ? Lua::puc : Lua::luajit, "busy");
    Folder folder;
    Luaspy luaspy({"record", "-r", "5000", "--max-stopped", "100", "-d", "20", "-f", "folded", "-o", "profile", "--pid",
                   victim.pid()},
                  folder);
    sleep_ms(campaign.random(0, 80));
    const int signal = campaign.chance(0.5) ? SIGKILL : SIGTERM;
    victim.process().signal(signal);
    check_end(campaign, victim, 128 + signal);
    check_profile(campaign, luaspy);
  }
}

// A child of luaspy: its exit status becomes luaspy's, and its output is not changed.
void is_launched_and_ends(Campaign& campaign) {
  while (campaign.next()) {
    Folder folder;
    const std::string board = folder.path("board"), said = folder.path("said");
    write_file(board, std::string(sizeof(Board), '\0'));
    const std::string works = std::to_string(static_cast<int>(campaign.random(1, 60)));
    Luaspy luaspy({"record", "-r", "5000", "--max-stopped", "100", "-f", "folded", "-o", "profile", "--",
                   victim_program(campaign.chance(0.5) ? Lua::puc : Lua::luajit), board, "ends", works},
                  folder, {.output = said});
    const std::optional<int> status = luaspy.process().wait(30);
    if (!status) campaign.harmed("luaspy does not end with its command");
    else if (*status != 37) campaign.harmed(fmt::format("its status is {}, not 37: {}", *status, luaspy.errors()));
    if (read_file(said) != "READY\n") campaign.harmed("its output is: " + read_file(said));
  }
}

}  // namespace luaspy::faults
