#pragma once

#include "campaign.h"

namespace luaspy::faults {

void kill_alloc(Campaign& campaign);
void alloc_ends_with_target(Campaign& campaign);
void alloc_urgent(Campaign& campaign);
void alloc_breakpoints(Campaign& campaign);
void alloc_children(Campaign& campaign);
void alloc_exec(Campaign& campaign);
void alloc_exec_in_thread(Campaign& campaign);
void alloc_exec_of_many(Campaign& campaign);
void alloc_threads(Campaign& campaign);
void alloc_stops(Campaign& campaign);
void alloc_timers(Campaign& campaign);
void alloc_queue(Campaign& campaign);
void alloc_maps(Campaign& campaign);
void alloc_blocked(Campaign& campaign);
void alloc_sleeps(Campaign& campaign);

}  // namespace luaspy::faults
