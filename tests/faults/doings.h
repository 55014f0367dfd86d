#pragma once

#include "campaign.h"

namespace luaspy::faults {

void does_threads(Campaign& campaign);
void does_children(Campaign& campaign);
void does_exec(Campaign& campaign);
void does_exec_in_thread(Campaign& campaign);
void queues_signals(Campaign& campaign);
void sets_timers(Campaign& campaign);
void stops_and_continues(Campaign& campaign);
void is_waited_for(Campaign& campaign);
void is_throttled(Campaign& campaign);
void is_real_time(Campaign& campaign);
void is_frozen_and_thawed(Campaign& campaign);
void is_stopped_by_storms(Campaign& campaign);
void is_launched_under_quota_of_a_second(Campaign& campaign);
void is_launched_under_quota(Campaign& campaign);
void maps_and_unmaps(Campaign& campaign);
void has_no_memory(Campaign& campaign);
void is_not_dumpable(Campaign& campaign);
void changes_user(Campaign& campaign);
void ends(Campaign& campaign);
void is_killed(Campaign& campaign);
void is_launched_and_ends(Campaign& campaign);
void is_debugged(Campaign& campaign);
void is_debugged_by_gdb(Campaign& campaign);
void has_blocked_threads(Campaign& campaign);
void blocks_all_the_time(Campaign& campaign);

}  // namespace luaspy::faults
