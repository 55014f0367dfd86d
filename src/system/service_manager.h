#pragma once
// What a service says to the manager that has started it (sd_notify(3)): a datagram to the socket that $NOTIFY_SOCKET
// names. Without one nothing is said.

#include <optional>
#include <string>

#include "system/calls.h"

namespace luaspy::system {

// Lines of NAME=VALUE: "READY=1", "STATUS=…", "STOPPING=1", "WATCHDOG=1".
void notify_service_manager(const std::string& lines);
// How often it expects WATCHDOG=1, at least; nullopt: it does not (sd_watchdog_enabled(3)).
std::optional<Clock::duration> watchdog_time();

}  // namespace luaspy::system
