// Faults: luaspy is ended at random instants of attaching, stopping, reading and resuming.

#include "kills.h"

#include <fmt/format.h>
#include <signal.h>

#include "support/luaspy.h"
#include "victim.h"

namespace luaspy::faults {
namespace {

// Some instants are during attaching, which takes about 15 ms; most are between ticks and in stops.
void await_instant(Campaign& campaign, const Luaspy& luaspy) {
  if (campaign.chance(0.3)) {
    sleep_ms(campaign.random(0, 20));
    return;
  }
  (void)luaspy.await_recording();
  sleep_ms(campaign.random(0, 40));
}

// Stops luaspy for a moment, to see whether the signal comes while it holds a thread.
bool signal_and_see(const Luaspy& luaspy, const Victim& victim, int signal) {
  luaspy.process().signal(SIGSTOP);
  const bool stopped = luaspy.await_state('T');
  const bool held = stopped && victim.held().traced > 0;
  luaspy.process().signal(signal);
  luaspy.process().signal(SIGCONT);
  return held;
}

void killed(Campaign& campaign, int signal, const Words& command) {
  Victims victims(campaign, "busy");
  int in_stops = 0;
  while (campaign.next()) {
    Victim& victim = victims.next();
    Folder folder;
    Words words = command;
    for (std::string& word : words) {
      if (word == "PID") word = victim.pid();
    }
    Luaspy luaspy(words, folder);
    await_instant(campaign, luaspy);
    if (campaign.chance(0.5)) in_stops += signal_and_see(luaspy, victim, signal);
    else luaspy.process().signal(signal);
    if (!luaspy.process().wait(30))
      campaign.harmed(
          fmt::format("luaspy does not end after signal {}: {}{}", signal, luaspy.errors(), luaspy.where()));
    victims.check();
  }
  campaign.remark(fmt::format("{} seen to be in a stop", in_stops));
}

const Words fast = {"record", "-r", "5000", "--max-stopped", "100", "-f", "folded", "-o", "profile", "--pid", "PID"};
const Words usual = {"record", "-f", "folded", "-o", "profile", "--pid", "PID"};
const Words dump = {"dump", "--locals", "--coroutines", "--count", "1000", "--interval", "0.001", "--pid", "PID"};
const Words top = {"top", "--batch", "-r", "5000", "--pid", "PID"};

}  // namespace

void kill_at_5_khz(Campaign& campaign) { killed(campaign, SIGKILL, fast); }
void kill_at_100_hz(Campaign& campaign) { killed(campaign, SIGKILL, usual); }
void kill_dump(Campaign& campaign) { killed(campaign, SIGKILL, dump); }
void kill_top(Campaign& campaign) { killed(campaign, SIGKILL, top); }
void term_at_5_khz(Campaign& campaign) { killed(campaign, SIGTERM, fast); }
void int_at_5_khz(Campaign& campaign) { killed(campaign, SIGINT, fast); }
void term_dump(Campaign& campaign) { killed(campaign, SIGTERM, dump); }

}  // namespace luaspy::faults
