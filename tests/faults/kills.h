#pragma once

#include "campaign.h"

namespace luaspy::faults {

void kill_at_5_khz(Campaign& campaign);
void kill_at_100_hz(Campaign& campaign);
void kill_dump(Campaign& campaign);
void kill_top(Campaign& campaign);
void term_at_5_khz(Campaign& campaign);
void int_at_5_khz(Campaign& campaign);
void term_dump(Campaign& campaign);

}  // namespace luaspy::faults
