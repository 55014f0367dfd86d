#pragma once

#include "campaign.h"

namespace luaspy::faults {

void has_the_same_output(Campaign& campaign);

void asked_to_end(Campaign& campaign);
void asked_twice(Campaign& campaign);
void nohup(Campaign& campaign);
void terminal_is_closed(Campaign& campaign);
void killed_while_raw(Campaign& campaign);
void killed_while_rewriting(Campaign& campaign);
void disk_is_full(Campaign& campaign);
void device_is_full(Campaign& campaign);
void pipe_is_closed(Campaign& campaign);
void path_cannot_be_written(Campaign& campaign);

}  // namespace luaspy::faults
